"""Every key that a schema names is written by some code: a figure that nothing computes any more is named here."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlflow import schemas

# Where the documents of a schema are put together, and the library's own reports that are part of them. Of a stage that
# is the script of its name, of a study its folder, unless the schema is named here.
PIPELINES = Path(__file__).parents[2] / "pipelines"
STAGES = {path.stem: [f"pipelines/{path.name}"] for path in PIPELINES.glob("*.py")}
STUDIES = {path.name: [f"pipelines/studies/{path.name}"] for path in (PIPELINES / "studies").iterdir() if path.is_dir()}
LEARNED, LATENCIES = STUDIES["learned"], ["pipelines/studies/latencies.py", "src/rlflow/runtime/session.py"]
WRITERS = {name: writers for name, writers in (STAGES | STUDIES).items() if name in schemas.names()} | {
    "bench": ["benchmarks"],
    "collect_rollouts": [
        *STAGES["collect_rollouts"],
        "pipelines/experiment/rollouts",
        "src/rlflow/environments/end_to_end.py",
    ],
    "conformance": ["tests/support/conformance", "tests/onnx_io/test_conformance.py"],
    "curves": ["pipelines/tracking", "pipelines/experiment/curves.py"],
    "equivalence": ["src/rlflow/equivalence", "src/rlflow/cli/equivalence.py"],
    "evaluate": [
        *STAGES["evaluate"],
        "pipelines/experiment/comparison.py",
        "pipelines/experiment/delivery.py",
        "src/rlflow/cost",
    ],
    "exports": ["tests/support/exports", "tests/onnx_io/test_exports.py"],
    "fit_world_model": [*STAGES["fit_world_model"], "pipelines/experiment/world_models"],
    "fuzz": ["tests/properties", "tests/support/fuzz_shards.py"],
    "headroom": [*STUDIES["headroom"], "pipelines/experiment/comparison.py"],
    "headroom_latency": [*STUDIES["headroom"], *LATENCIES],
    "learned_delivered": [*LEARNED, *LATENCIES],
    "learned_summary": LEARNED,
    "learned_unseen": LEARNED,
    "mutants": ["tests/support/mutants.py", "tests/equivalence/test_survey.py"],
    "optimise": ["src/rlflow/optimise", "src/rlflow/cost/effort.py", "src/rlflow/equivalence/report.py"],
    "pass_ordering_graphs": STUDIES["pass_ordering"],
    "replay": ["src/rlflow/cli/replay.py", "src/rlflow/trajectory"],
    "repro_study": [*STUDIES["repro_study"], "pipelines/experiment/reproduction_report.py", "src/rlflow/schemas"],
    "reproduction": ["pipelines/experiment"],
    "reward_study": [
        *STUDIES["reward_study"],
        "src/rlflow/environments/end_to_end.py",
        "src/rlflow/runtime/session.py",
    ],
    "rule_study": ["benchmarks/rules.py", "src/rlflow/rules", "src/rlflow/synthesis"],
    "rules_applied": STAGES["evaluate"],
    "rules_diff": ["src/rlflow/cli/rules.py"],
    "rules_generate": ["src/rlflow/cli/rules.py", "src/rlflow/synthesis"],
    "rules_list": ["src/rlflow/cli/rules.py"],
    "rules_recall": ["src/rlflow/cli/rules.py", "src/rlflow/synthesis/taso"],
    "rules_show": ["src/rlflow/cli/rules.py", "src/rlflow/rules"],
    "rules_verify": ["src/rlflow/cli/rules.py"],
    "timing": STUDIES["timing_study"],
    "zoo_list": ["src/rlflow/cli/zoo.py"],
}


def test_every_schema_has_a_writer() -> None:
    assert set(WRITERS) == set(schemas.names())


@pytest.mark.parametrize("name", WRITERS)
def test_every_key_of_a_schema_is_written(name: str, repository: Path) -> None:
    keys = set(_keys(schemas.schema(name)))
    unwritten = sorted(keys - _written(keys, _modules(repository, name)))
    assert not unwritten, f"{name}.schema.json names what none of {WRITERS[name]} writes"


def test_a_key_that_nothing_writes_is_noticed(repository: Path) -> None:
    """Two figures that the evaluation's schema named until nothing wrote them, and one that is made of pieces."""
    keys = {"cost_after_ms_ci95", "improvement_percent_ci95", "latency_ratio_deployed_ci95", "cost_after_ms"}
    assert _written(keys, _modules(repository, "evaluate")) == {"latency_ratio_deployed_ci95", "cost_after_ms"}


def _keys(schema: Any) -> Iterator[str]:
    """The names under `properties`, at any depth."""
    if isinstance(schema, list):
        for part in schema:
            yield from _keys(part)
    elif isinstance(schema, dict):
        for keyword, value in schema.items():
            if keyword == "properties":
                yield from value
                yield from _keys(list(value.values()))
            elif keyword not in ("required", "enum", "const"):
                yield from _keys(value)


def _modules(repository: Path, name: str) -> list[Path]:
    places = [repository / place for place in WRITERS[name]]
    found = [sorted(place.rglob("*.py")) if place.is_dir() else [place] for place in places]
    assert all(found), f"one of {WRITERS[name]} has no module"
    return [module for modules in found for module in modules]


def _written(keys: set[str], modules: list[Path]) -> set[str]:
    """The keys that a module has as a text, a keyword or a field, or has an f-string for that can give them."""
    nodes = [node for module in modules for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))]
    named = {word for node in nodes for word in _words(node)}
    patterns = [_pattern(node) for node in nodes if isinstance(node, ast.JoinedStr)]
    return {key for key in keys if key in named or any(pattern.fullmatch(key) for pattern in patterns)}


def _words(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
            if "\n" not in text:
                yield from text.split()
        case ast.keyword(arg=str(argument)):
            yield argument
        case ast.AnnAssign(target=ast.Name(id=field)):
            yield field


def _pattern(text: ast.JoinedStr) -> re.Pattern[str]:
    """What the f-string can give, where it begins with a text; anything would fit one that does not."""
    parts = [re.escape(str(p.value)) if isinstance(p, ast.Constant) else "[a-z0-9_]+" for p in text.values]
    starts_with_a_word = isinstance(text.values[0], ast.Constant) if text.values else False
    return re.compile("".join(parts) if starts_with_a_word else "(?!)")
