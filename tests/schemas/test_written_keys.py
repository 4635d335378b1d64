"""Every key that a type names is written by some code: a figure that nothing computes any more is named here."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from experiment.documents.evaluate import Evaluate
from support.every_document import EVERY

from rlflow.schemas.figures import Figure
from rlflow.schemas.forms import Form

LATENCIES = ["pipelines/studies/latencies.py", "src/rlflow/runtime/session.py"]
EVALUATION = ["pipelines/experiment/comparison.py", "pipelines/experiment/delivery.py", "src/rlflow/cost"]
OPTIMISE = ["src/rlflow/optimise", "src/rlflow/cost/effort.py", "src/rlflow/equivalence/report.py"]
FURTHER = {
    "bench.json": ["benchmarks"],
    "big_model.json": ["benchmarks"],
    "pass_walks.json": ["benchmarks"],
    "conformance.json": ["tests/support/conformance", "tests/onnx_io/test_conformance.py"],
    "exports.json": ["tests/support/exports", "tests/onnx_io/test_exports.py"],
    "fuzz.json": ["tests/properties", "tests/support/fuzz_shards.py"],
    "mutants.json": ["tests/support/mutants.py", "tests/equivalence/test_survey.py"],
    "rule_study/metrics.json": ["benchmarks/rules.py", "src/rlflow/rules", "src/rlflow/synthesis"],
    "curves.json": ["pipelines/tracking", "pipelines/experiment/curves.py"],
    "learned/curves_by_prices.json": ["pipelines/experiment/curves.py"],
    "collect_rollouts/metrics.json": ["pipelines/experiment/formulations", "src/rlflow/environments/end_to_end.py"],
    "fit_world_model/metrics.json": ["pipelines/experiment/formulations"],
    "evaluate/metrics.json": EVALUATION,
    "evaluate/rules_applied.json": ["pipelines/evaluate.py"],
    "evaluate/states.json": ["pipelines/experiment/states.py"],
    "headroom/metrics.json": EVALUATION,
    "headroom/latency.json": LATENCIES,
    "learned/delivered.json": LATENCIES,
    "repro_study/metrics.json": ["pipelines/experiment/reproduction_report.py", "src/rlflow/schemas/figures.py"],
    "reward_study/metrics.json": ["src/rlflow/environments/end_to_end.py", "src/rlflow/runtime/session.py"],
    "timing/metrics.json": ["pipelines/studies/timing_study"],
    "verify_repro": ["pipelines/experiment/reproduction_report.py", "src/rlflow/schemas/figures.py"],
    "optimise": OPTIMISE,
    "optimise --dispatch": OPTIMISE,
    "doctor": ["src/rlflow/optimise/reported/latency.py"],
    "equivalence": ["src/rlflow/equivalence", "src/rlflow/cli/equivalence.py"],
    "replay": ["src/rlflow/cli/replay.py"],
    "rules why": ["src/rlflow/cli/rules_why.py"],
    "rules show": ["src/rlflow/cli/rules.py", "src/rlflow/rules", "pipelines/studies/portability"],
    "rules generate": ["src/rlflow/cli/rules.py", "src/rlflow/synthesis"],
    "rules recall": ["src/rlflow/cli/rules.py", "src/rlflow/synthesis/taso"],
    "zoo list": ["src/rlflow/cli/zoo.py"],
}
"""Where a document is put together besides in the stage or the study, or in the group of commands, of its name."""


def writers(name: str, repository: Path) -> list[Path]:
    own = name.partition("/")[0].partition(" ")[0]
    places = [f"pipelines/{own}.py", f"pipelines/studies/{own}", f"src/rlflow/cli/{own}.py", *FURTHER.get(name, ())]
    found = [path for place in places for path in (repository / place, *(repository / place).rglob("*.py"))]
    modules = [path for path in found if path.suffix == ".py" and path.exists() and path.name != "documents.py"]
    assert modules, f"no module writes {name}"
    return modules


@pytest.mark.parametrize("name", EVERY)
def test_every_key_of_a_document_is_written(name: str, repository: Path) -> None:
    classes = dict(_classes(Form.of(EVERY[name])))
    unwritten = _unwritten(classes, writers(name, repository))
    assert not unwritten, f"the type of {name} names what none of its writers does"


def test_a_key_that_nothing_writes_is_noticed(repository: Path) -> None:
    """Two figures that the evaluation's type named until nothing wrote them, and one that is made of pieces."""
    keys = {"cost_after_ms_ci95", "improvement_percent_ci95", "latency_ratio_deployed_ci95", "cost_after_ms"}
    unwritten = _unwritten({"Result": keys}, writers("evaluate/metrics.json", repository))
    assert unwritten == ["cost_after_ms_ci95", "improvement_percent_ci95"]
    assert "Result" in dict(_classes(Form.of(Evaluate)))


def _classes(form: Form, above: frozenset[str] = frozenset()) -> Iterator[tuple[str, set[str]]]:
    """The classes of a document's objects with their keys; those of a figure stand in its class."""
    below = [*form.children.values(), *form.others.values()]
    if form.is_object:
        if form.cls is Figure or form.cls.__name__ in above:
            return
        above |= {form.cls.__name__}
        yield form.cls.__name__, set(form.children)
    for child in below:
        yield from _classes(child, above)


def _unwritten(classes: dict[str, set[str]], modules: list[Path]) -> list[str]:
    """The keys that no module has as a text, a keyword or a field, or has an f-string for that can give them.

    A class that is called by its name, or whose method makes one, is given all its keys, which mypy sees to.
    """
    nodes = [node for module in modules for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))]
    named = {word for node in nodes for word in _words(node)}
    called = {name for node in nodes if isinstance(node, ast.Call) for name in _made(node.func)}
    patterns = [_pattern(node) for node in nodes if isinstance(node, ast.JoinedStr)]
    keys = set().union(*(keys for name, keys in classes.items() if name not in called)) - named
    return sorted(key for key in keys if not any(pattern.fullmatch(key) for pattern in patterns))


def _made(function: ast.expr) -> Iterator[str]:
    match function:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name)):
            yield name


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
    """What the f-string can give, where it has a word of its own; anything would fit one that has not."""
    parts = [re.escape(str(p.value)) if isinstance(p, ast.Constant) else "[a-z0-9_]+" for p in text.values]
    has_a_word = any(isinstance(p, ast.Constant) and re.search("[a-z]{2}", str(p.value)) for p in text.values)
    return re.compile("".join(parts) if has_a_word else "(?!)")
