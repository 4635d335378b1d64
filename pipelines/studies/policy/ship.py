"""Copy the policy into the library, with the data sheet that tells what it was trained on and where it fails."""

from pathlib import Path

from experiment.results import read_results

from rlflow.agents.match_level.taught_guide import TaughtGuide
from rlflow.atomic_file import written_whole
from studies.policy.data_sheet import data_sheet

POLICY = Path("data/policy/whole")
JUDGED, TRIED = (Path(f"data/results/policy/{name}.json") for name in ("metrics", "trial"))
SHIPPED = Path("src/rlflow/agents/shipped")
SHEET = "data_sheet.md"


def main() -> None:
    """Write the shipped files; the same policy and figures give the same files, byte for byte."""
    sheet = data_sheet(read_results(JUDGED), read_results(TRIED))
    TaughtGuide.load(POLICY).save(SHIPPED)
    with written_whole(SHIPPED / SHEET) as draft:
        draft.write_text(sheet, encoding="utf-8")
