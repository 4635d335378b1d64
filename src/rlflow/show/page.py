"""One file of HTML that needs nothing else: no network, no other file, no library.

    write(path, "bert.onnx", content)               # content: what `model_page.js` draws, as JSON can hold it
    write(path, "rules", content, "rules_page.js")

`page.html` is the frame, `page.css` the looks, and a script makes the page of the content by means of `elements.js`.
Names in the content come from models and may hold anything: they are data to the script, never markup, and the page's
policy admits no script but this one and no address at all.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from string import Template
from typing import Any

from rlflow.atomic_file import written_whole

MODEL, RULES = "model_page.js", "rules_page.js"
"""The scripts of pages."""


def write(path: Path, title: str, content: dict[str, Any], script: str = MODEL) -> None:
    """Write the page whole or not at all; missing folders are made."""
    with written_whole(path) as draft:
        draft.write_text(page(title, content, script), encoding="utf-8")


def page(title: str, content: dict[str, Any], script: str = MODEL) -> str:
    """Return the page as text."""
    script = _part("elements.js") + _part(script)
    return Template(_part("page.html")).substitute(
        title=escape(title),
        style=_part("page.css"),
        script=script,
        digest=b64encode(sha256(script.encode()).digest()).decode(),
        content=_embedded(content | {"title": title, "version": version("rlflow")}),
    )


def _part(name: str) -> str:
    return resources.files("rlflow.show").joinpath(name).read_text(encoding="utf-8")


def _embedded(content: dict[str, Any]) -> str:
    """JSON in which nothing ends the element that holds it."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
