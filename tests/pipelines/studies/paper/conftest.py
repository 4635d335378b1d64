"""The documents that the page of results is made from, made up, and what the papers print."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from studies.paper.page import page
from support.papers import results


@pytest.fixture(scope="module")
def published(repository: Path) -> Any:
    return OmegaConf.to_container(OmegaConf.load(repository / "conf/study/published.yaml"))


@pytest.fixture
def everything(repository: Path) -> dict[str, Any]:
    return results(repository)


@pytest.fixture
def section(everything: dict[str, Any], published: Any) -> Callable[[str], str]:
    """The text of the page from a heading to the next, by the documents as they are when it is asked for."""

    def found(title: str) -> str:
        _, after = page(everything, published).split(f"## {title}", 1)
        return after.split("\n## ", 1)[0]

    return found
