"""Turn this folder into a site: hooks of MkDocs, which `make site` runs.

The pages are written to be read in a checkout, too, where a link may lead out of docs/: to a picture of a result, to a
table, to a module. The site has a copy of each such page and picture under project/, and links lead there; it has no
copies of modules, whose links become plain text. The pages of commands and of rules are made of the code.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import typer
from mkdocs.structure.files import File, Files
from typer.cli import get_docs_for_click

from rlflow.cli.main import app
from rlflow.rules import library
from rlflow.show import page as html_page
from rlflow.show.rules_page import rules_content

REPOSITORY = Path(__file__).parents[1]
DOCS = Path(__file__).parent
COPIES = PurePosixPath("project")
"""Where the site has what lies outside docs/."""

_COPIED = (".md", ".png", ".svg")
_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\(([^()\s#]+)(#[^()\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the copies of what pages refer to, and what is made of the code."""
    for path in sorted(_linked([*map(REPOSITORY.joinpath, _PAGES), *DOCS.rglob("*.md")])):
        files.append(File.generated(config, _address(path), abs_src_path=str(path)))
    made = {
        "reference/commands.md": _commands(),
        "reference/all_rules.html": html_page.page(
            "Substitution rules", rules_content(library.load()), html_page.RULES
        ),
    }
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links that leave docs/ to the site's copies; where it has none, keep their text."""
    source = _source(page.file.src_uri)

    def led(found: re.Match[str]) -> str:
        mark, text, target, anchor = found.groups()
        path = _target(source, target)
        if path is None:
            return found.group()
        if not (path.is_relative_to(DOCS) or _is_copied(path)):
            return text
        address = os.path.relpath(_address(path), PurePosixPath(page.file.src_uri).parent)
        return f"{mark}[{text}]({address}{anchor or ''})"

    return _LINK.sub(led, markdown)


def _linked(pages: list[Path]) -> set[Path]:
    """The files outside docs/ of which the site has copies: some pages, and what any of its pages refers to."""
    found: set[Path] = set()
    waiting = list(pages)
    while waiting:
        page = waiting.pop()
        if not page.is_relative_to(DOCS):
            found.add(page)
        waiting += [path for path in _targets(page) if _is_copied(path) and path not in found]
    return found


def _targets(page: Path) -> Iterator[Path]:
    if page.suffix == ".md":
        for _, _, target, _ in _LINK.findall(page.read_text()):
            if path := _target(page, target):
                yield path


def _target(source: Path, link: str) -> Path | None:
    """The file or folder of the checkout to which a link leads, or None."""
    path = Path(os.path.normpath(source.parent / link))
    return path if path.exists() and path.is_relative_to(REPOSITORY) else None


def _is_copied(path: Path) -> bool:
    return path.suffix in _COPIED and not path.is_relative_to(DOCS)


def _address(path: Path) -> str:
    """The address within the site of a page or picture, or of its copy."""
    return str(path.relative_to(DOCS) if path.is_relative_to(DOCS) else COPIES / path.relative_to(REPOSITORY))


def _source(address: str) -> Path:
    """The file of which a page was made."""
    relative = PurePosixPath(address)
    return REPOSITORY / relative.relative_to(COPIES) if relative.is_relative_to(COPIES) else DOCS / relative


def _commands() -> str:
    """The page of all commands, as they describe themselves."""
    group: Any = typer.main.get_command(app)
    context = group.context_class(group, info_name="rlflow")
    commands = {name: group.resolve_command(context, [name])[1] for name in group.list_commands(context)}
    described = (
        get_docs_for_click(obj=command, ctx=context, name=name, call_prefix="rlflow", indent=1)
        for name, command in commands.items()
    )
    return "# Command line\n\n" + "\n".join(described)
