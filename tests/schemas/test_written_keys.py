"""Every key that a schema names is written by some code: a figure that nothing computes any more is named here."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlflow import schemas

# Where the documents of a schema are put together, and the library's own reports that are part of them. Of a stage that
# is the script of its name, unless it is told here.
PIPELINES = {path.stem: path for path in (Path(__file__).parents[2] / "pipelines").glob("*.py")}
WRITERS = {name: [f"pipelines/{name}.py"] for name in schemas.names() if name in PIPELINES} | {
    "bench": ["benchmarks"],
    "budgets": ["pipelines/budgets.py", "src/rlflow/evaluation/budget_study.py"],
    "collect_rollouts": [
        "pipelines/collect_rollouts.py",
        "pipelines/rollouts",
        "src/rlflow/environments/end_to_end.py",
    ],
    "conformance": ["tests/support/conformance", "tests/onnx_io/test_conformance.py"],
    "curves": ["src/rlflow/tracking"],
    "equivalence": ["src/rlflow/equivalence", "src/rlflow/cli/equivalence.py"],
    "evaluate": [
        "pipelines/evaluate.py",
        "src/rlflow/evaluation/comparison.py",
        "src/rlflow/evaluation/delivery.py",
        "src/rlflow/cost",
    ],
    "exports": ["tests/support/exports", "tests/onnx_io/test_exports.py"],
    "fit_world_model": ["pipelines/fit_world_model.py", "pipelines/world_models"],
    "fuzz": ["tests/properties", "tests/support/fuzz_shards.py"],
    "headroom": ["src/rlflow/evaluation/headroom.py", "src/rlflow/evaluation/comparison.py"],
    "headroom_latency": [
        "pipelines/headroom_latency.py",
        "src/rlflow/evaluation/latencies.py",
        "src/rlflow/runtime/session.py",
    ],
    "learned": ["pipelines/learned.py", "src/rlflow/evaluation/learned.py"],
    "learned_delivered": [
        "pipelines/learned_delivered.py",
        "src/rlflow/evaluation/latencies.py",
        "src/rlflow/runtime/session.py",
    ],
    "learned_summary": ["src/rlflow/evaluation/learned_summary.py"],
    "learned_unseen": ["pipelines/learned.py"],
    "mutants": ["tests/support/mutants.py", "tests/equivalence/test_survey.py"],
    "optimise": ["src/rlflow/optimise", "src/rlflow/cost/effort.py", "src/rlflow/equivalence/report.py"],
    "paper": ["pipelines/paper", "src/rlflow/evaluation/paper"],
    "pass_ordering": ["src/rlflow/evaluation/pass_ordering"],
    "pass_ordering_graphs": ["pipelines/pass_ordering", "src/rlflow/evaluation/pass_ordering"],
    "policy": ["pipelines/policy", "src/rlflow/evaluation/policy_sheet.py"],
    "prices": ["pipelines/prices.py", "src/rlflow/evaluation/region_sheet.py"],
    "price_model": [
        "pipelines/price_model.py",
        "src/rlflow/evaluation/price_models.py",
        "src/rlflow/evaluation/price_accuracy.py",
    ],
    "price_search": ["pipelines/price_search.py", "src/rlflow/evaluation/price_search.py"],
    "replay": ["src/rlflow/cli/replay.py", "src/rlflow/trajectory"],
    "repro_study": ["pipelines/repro_study.py", "src/rlflow/evaluation/reproduction_report.py", "src/rlflow/schemas"],
    "reproduction": ["src/rlflow/evaluation"],
    "reward_study": [
        "pipelines/reward_study.py",
        "src/rlflow/evaluation/reward_study.py",
        "src/rlflow/environments/end_to_end.py",
        "src/rlflow/runtime/session.py",
    ],
    "rule_study": ["benchmarks/rules.py", "src/rlflow/rules", "src/rlflow/synthesis"],
    "rules_applied": ["pipelines/evaluate.py"],
    "rules_diff": ["src/rlflow/cli/rules.py"],
    "rules_generate": ["src/rlflow/cli/rules.py", "src/rlflow/synthesis"],
    "rules_list": ["src/rlflow/cli/rules.py"],
    "rules_recall": ["src/rlflow/cli/rules.py", "src/rlflow/synthesis/taso"],
    "rules_show": ["src/rlflow/cli/rules.py", "src/rlflow/rules"],
    "rules_verify": ["src/rlflow/cli/rules.py"],
    "sample_efficiency": ["pipelines/sample_efficiency.py", "src/rlflow/evaluation/sample_efficiency.py"],
    "speedups": ["pipelines/speedups.py", "src/rlflow/evaluation/speedups.py"],
    "timing": ["pipelines/timing_study.py", "src/rlflow/evaluation/timing_study.py"],
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
