"""Put the table of the last evaluation into README.md."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
START = "<!-- results: data/results/evaluate/table.md, by `python docs/results_table.py` -->\n"
END = "<!-- end of results -->\n"


def with_table(readme: str, table: str) -> str:
    """`readme` with `table` between its two markers."""
    before, rest = readme.split(START)
    _, after = rest.split(END)
    return f"{before}{START}{table}{END}{after}"


def main() -> None:
    """Rewrite README.md."""
    readme = ROOT / "README.md"
    table = (ROOT / "data/results/evaluate/table.md").read_text()
    readme.write_text(with_table(readme.read_text(), table))


if __name__ == "__main__":
    main()
