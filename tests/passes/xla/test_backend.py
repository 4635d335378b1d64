"""XLA as a backend: passes on programs, keys across processes, equality of what comes out."""

import subprocess
import sys
from pathlib import Path

import pytest

from rlflow.errors import InputError
from rlflow.passes.xla import dataset
from rlflow.passes.xla.backend import XlaBackend
from rlflow.passes.xla.pass_names import ACTIONS

_FEW = [
    *("gru/forward?layers=1", "branches", "update", "prefix"),
    *(
        pytest.param(name, marks=pytest.mark.exhaustive)
        for name in ("mlp/step?layers=1", "sampler", "vgg/step?blocks=1")
    ),
]

_WALKED = ("call-inliner", "algsimp", "cse", "scatter_expander", "default")
_WALK = """
import sys
from rlflow.passes.xla.backend import XlaBackend
backend = XlaBackend()
program = backend.load(sys.argv[1])
keys = [program.facts.key]
for name in sys.argv[2:]:
    program = backend.apply(program.payload, name)
    keys.append(program.facts.key)
print(*keys)
"""


def test_loading_twice_and_loading_what_was_loaded_give_one_program(xla: XlaBackend) -> None:
    first = xla.load("mlp/step?layers=1")
    assert xla.load("mlp/step?layers=1") == first
    assert xla.load(first.payload).facts == first.facts


def test_a_pass_that_does_nothing_gives_the_bytes_back(xla: XlaBackend) -> None:
    """And one that does something gives others, of another key; both kinds are met."""
    program = xla.load("update")
    results = {name: xla.apply(program.payload, name) for name in ACTIONS}
    changed = {name for name, after in results.items() if after.payload != program.payload}
    assert changed == {name for name, after in results.items() if after.facts.key != program.facts.key}
    assert {"algsimp", "scatter_expander", "cse"} <= changed
    assert {"topk-decomposer", "shape-canonicalizer"} <= set(ACTIONS) - changed


@pytest.mark.slow
@pytest.mark.parametrize("name", _FEW)
def test_a_second_run_in_place_finds_what_the_first_left(xla: XlaBackend, name: str) -> None:
    """Facts that `apply` tells are those that a load of the same bytes tells: keys are stable on the way there and
    back, whichever pass was the last."""
    program = xla.load(name)
    for action in ("call-inliner", "algsimp", "simplify-while-loops", "gather_expander", "cse"):
        program = xla.apply(program.payload, action)
        assert xla.load(program.payload).facts == program.facts
        assert XlaBackend().apply(program.payload, "dynamic-dimension-simplifier") == program


@pytest.mark.slow
def test_keys_are_the_same_in_every_process(xla: XlaBackend) -> None:
    """With hashes of strings that differ, and after passes."""
    command = [sys.executable, "-c", _WALK, "graph_network/step?rounds=1", *_WALKED]
    keys = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    program = xla.load("graph_network/step?rounds=1")
    ours = [program.facts.key]
    for name in _WALKED:
        program = xla.apply(program.payload, name)
        ours.append(program.facts.key)
    assert keys == ours
    assert len(set(keys)) >= 4, "most of these passes change the program"


@pytest.mark.slow
@pytest.mark.parametrize("name", _FEW)
def test_what_pipelines_make_computes_the_same(xla: XlaBackend, name: str) -> None:
    program = xla.load(name)
    for pipeline in xla.catalogue().pipelines:
        after = xla.apply(program.payload, pipeline)
        assert after.facts.key != program.facts.key
        assert xla.check(program.payload, after.payload, seed=0) == ""


@pytest.mark.study
@pytest.mark.parametrize("name", dataset.names())
def test_every_pass_can_be_run_on_every_kind_of_program(xla: XlaBackend, name: str) -> None:
    """One after another, twice, so that they meet what the others leave."""
    start = program = xla.load(name)
    for action in ACTIONS * 2:
        program = xla.apply(program.payload, action)
    assert xla.check(start.payload, program.payload, seed=1) == ""


def test_a_file_of_stablehlo_is_a_program(xla: XlaBackend, tmp_path: Path) -> None:
    path = tmp_path / "program.mlir"
    path.write_bytes(dataset.stablehlo("prefix"))
    assert xla.load(str(path)) == xla.load("prefix")


def test_what_cannot_be_loaded_or_run_is_refused(xla: XlaBackend) -> None:
    with pytest.raises(InputError, match="the program is not StableHLO that XLA can compile"):
        xla.load(b"garbage")
    with pytest.raises(InputError, match="no program 'nothing', and no such file"):
        xla.load("nothing")
    with pytest.raises(InputError, match="XLA has no pass 'fusion' here: choose from flatten-call-graph"):
        xla.apply(xla.load("prefix").payload, "fusion")


def test_compiled_operations_are_those_of_the_code_that_runs(xla: XlaBackend) -> None:
    """XLA simplifies what it compiles: the sum of equal terms is computed once."""
    program = xla.load("branches")
    assert 0 < xla.compiled_operations(program.payload)
    assert xla.compiled_operations(program.payload) == xla.compiled_operations(program.payload)
