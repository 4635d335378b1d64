"""Every runtime that is registered, by the properties that judging, comparing and timing rely on.

OpenVINO is an extra: what needs it is skipped where it is not installed.
"""

from __future__ import annotations

import ast
import math
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from onnx import ModelProto, parser
from support.coarse_runtime import COARSE as COARSE_RUNTIME
from support.coarse_runtime import Coarse, announce
from support.repository import REPOSITORY

import rlflow
from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.equivalence.reference import reference_of
from rlflow.errors import InputError, RLFlowError
from rlflow.extras import MissingExtraError
from rlflow.optimise.gate import GateConfig, judged
from rlflow.optimise.timing import timed
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.runtimes import RUNTIMES, YARDSTICK, installed_runtimes, open_model, runtime_names, setting_of
from rlflow.runtime.timing.latency import compare_latency

ERRORS = {"float32": 1e-5, "bfloat16": 3e-2}
"""The relative errors that a precision explains in these few layers."""
COARSE = ERRORS["bfloat16"]
TWO_OUTPUTS = parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    model (float[2, 3] x, int64[2] i) => (float[2, 3] b, int64[2] n, float[2, 3] a) {
        a = Tanh(x)
        b = Identity(a)
        n = Add(i, i)
    }
""")


@pytest.fixture(params=[*RUNTIMES.names(), "interpreter"])
def setting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Every setting of the registry, and that of the example, as its package would bring it."""
    if request.param == "interpreter":
        announce(tmp_path, interpreter="own_runtime:FLOAT32")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.syspath_prepend(REPOSITORY / "examples")
    try:
        open_model(TWO_OUTPUTS, request.param)
    except (MissingExtraError, RLFlowError) as missing:
        pytest.skip(str(missing))
    found: str = request.param
    return found


def inputs_of(model: ModelProto) -> dict[str, np.ndarray]:
    return draw_inputs(model, np.random.default_rng(0))


def test_outputs_have_the_names_order_and_types_of_the_model(setting: str) -> None:
    """`b` is another name of `a`, which a runtime may forget, and `n` holds whole numbers."""
    inputs = inputs_of(TWO_OUTPUTS)
    found = open_model(TWO_OUTPUTS, setting).run(inputs)
    assert list(found) == ["b", "n", "a"]
    assert [value.dtype for value in found.values()] == [np.float32, np.int64, np.float32]
    np.testing.assert_array_equal(found["n"], 2 * inputs["i"])
    np.testing.assert_allclose(found["a"], np.tanh(inputs["x"]), atol=COARSE)
    np.testing.assert_array_equal(found["a"], found["b"])


def test_every_runtime_computes_what_the_yardstick_computes(setting: str, tmp_path: Path) -> None:
    model = zoo.build("tiny_chain")
    rlflow.save_model(model, tmp_path / "model.onnx")
    inputs = inputs_of(model)
    (expected,) = open_model(model, YARDSTICK).run(inputs).values()
    assert expected.std() > 0, "else nothing could differ"
    for given in (model, tmp_path / "model.onnx"):
        (found,) = open_model(given, setting, threads=2).run(inputs).values()
        assert np.abs(found - expected).max() <= ERRORS[RUNTIMES.get(setting).precision] * np.abs(expected).max()


def test_outputs_are_the_callers_own(setting: str) -> None:
    model = open_model(TWO_OUTPUTS, setting)
    inputs = inputs_of(TWO_OUTPUTS)
    first = model.run(inputs)["a"]
    kept = first.copy()
    model.run(inputs | {"x": -inputs["x"]})
    model.repeated(inputs | {"x": 2 * inputs["x"]})()
    np.testing.assert_array_equal(first, kept)


def test_what_a_runtime_refuses_is_an_error_of_ours(setting: str) -> None:
    with pytest.raises(InputError, match="threads is 0"):
        open_model(TWO_OUTPUTS, setting, threads=0)
    unknown = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17, "no.such.domain" : 1]>
        model (float[2] x) => (float[2] y) { y = no.such.domain.Nothing(x) }
    """)
    with pytest.raises(RLFlowError, match="could not load"):
        open_model(unknown, setting)


def products(count: int) -> ModelProto:
    """A chain of so many products of matrices, and nothing else."""
    nodes = "".join(f"v{number + 1} = MatMul(v{number}, w) " for number in range(count))
    return parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[256, 256] v0, float[256, 256] w) => (float[256, 256] v{count}) {{ {nodes} }}
    """)


def test_the_clock_sees_the_work(setting: str) -> None:
    """On one thread it is that of the thread that asks: work in another would take no time."""
    model = open_model(products(16), setting, threads=1)
    run = model.repeated(inputs_of(products(16)))
    run()
    before_ns = time.thread_time_ns(), time.process_time_ns()
    for _ in range(5):
        run()
    thread_ns, process_ns = time.thread_time_ns() - before_ns[0], time.process_time_ns() - before_ns[1]
    assert thread_ns > 0.8 * process_ns


@pytest.mark.parametrize("threads", [1, 2])
def test_four_times_the_work_takes_longer(setting: str, threads: int) -> None:
    models = {"little": products(4), "much": products(16)}
    times_ms = compare_latency(models, setting=setting, rounds=3, runs_per_round=3, threads=threads)
    ratio = times_ms["much"].min() / times_ms["little"].min()
    assert 2 < ratio < (8 if threads == 1 else math.inf), "on several threads it is the time on the wall, beside others"


@pytest.mark.parametrize("threads", [1, 2])
def test_openvino_computes_in_float32_on_as_many_threads_as_are_asked_for(threads: int) -> None:
    """Left to itself, it would take all cores, and bfloat16 where the processor has it.

    It takes no more threads than there are cores for this process.
    """
    pytest.importorskip("openvino")
    opened = RUNTIMES.get("openvino").open(products(1), threads)
    compiled = opened.request.get_compiled_model()  # type: ignore[attr-defined]
    assert compiled.get_property("INFERENCE_NUM_THREADS") == min(threads, joblib.cpu_count())
    assert compiled.get_property("INFERENCE_PRECISION_HINT").to_string() == "f32"


def test_a_precision_that_the_processor_lacks_leaves_the_original() -> None:
    device = pytest.importorskip("openvino").Core()
    if "BF16" in device.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        pytest.skip("this processor computes in bfloat16")
    found = rlflow.optimise(zoo.build("tiny_chain"), setting="openvino_bfloat16", gate=GateConfig(tolerance=1e-2))
    assert found.report.written == "original"
    assert found.reason.endswith("this processor does not compute in bfloat16")


def test_a_wrong_model_is_found_in_every_runtime(setting: str) -> None:
    """The yardstick is the same for all of them."""
    right, wrong = (zoo.build("tiny_chain", seed=seed) for seed in (0, 1))
    reference = reference_of(right, (YARDSTICK, setting), draws=2)
    if RUNTIMES.get(setting).precision != "float32":
        reference.accepted = {setting: COARSE}
    assert compare(right, right, reference=reference).equivalent
    assert not compare(right, wrong, reference=reference).equivalent


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Coarse:
    """The runtime of another package, of which nothing but the registry knows."""
    announce(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    COARSE_RUNTIME.opened.clear()
    return COARSE_RUNTIME


def test_one_of_another_package_is_judged_compared_and_timed(coarse: Coarse) -> None:
    """How often it is asked says that no part of the gate opens models by itself."""
    model = zoo.build("tiny_chain")
    config = GateConfig(draws=1, rounds=2, runs_per_round=1, threads=2, tolerance=1e-2).running_in("coarse")
    judgement = judged(model, config)
    assert not judgement.unjudgeable
    assert set(judgement.paces) == {YARDSTICK, "coarse"}
    assert coarse.opened == [2]
    report = compare(model, model, reference=judgement.reference)
    assert (report.equivalent, report.worst_setting) == (True, "coarse")
    assert coarse.opened == [2, 1]
    change = timed(model, model, "coarse", config)
    assert len(coarse.opened) >= 2 + 4 * change.verdict.rounds


def test_a_coarser_precision_wants_a_tolerance(coarse: Coarse) -> None:
    with pytest.raises(InputError, match="coarse computes in bfloat16: name the relative error to accept"):
        GateConfig().running_in("coarse")
    wide, narrow = (GateConfig(tolerance=tolerance).running_in("coarse") for tolerance in (1e-2, 1e-4))
    model = zoo.build("tiny_chain")
    found, refused = judged(model, wide), judged(model, narrow)
    assert found.reference is not None
    assert found.reference.accepted == {"coarse": 1e-2}
    assert (found.report.own_setting, found.unjudgeable) == ("coarse", "")
    assert 1e-4 < found.report.own_error < 2**-7, "what cutting eight digits does"
    assert refused.unjudgeable.endswith("more than the tolerance of 1.0e-04")
    assert "between as written and in a coarse runtime" in refused.unjudgeable


def test_the_accepted_error_alone_decides_in_a_coarser_precision(coarse: Coarse) -> None:
    """A factor of 1.005 is a fault in float32, as it is as written, whatever a coarser precision may be off by."""
    reference = reference_of(scaled(1.0), ("coarse",), draws=1)
    assert not compare(scaled(1.0), scaled(1.005), reference=reference).equivalent
    reference.accepted = {"coarse": 1e-2}
    assert compare(scaled(1.0), scaled(1.005), reference=reference).equivalent
    report = compare(scaled(1.0), scaled(1.03), reference=reference)
    assert (report.equivalent, report.float64) == (False, None), "float64 has no say in what a user accepts"

    both = reference_of(scaled(1.0), (YARDSTICK, "coarse"), draws=1)
    both.accepted = reference.accepted
    assert compare(scaled(1.0), scaled(1.0), reference=both).equivalent
    assert compare(scaled(1.0), scaled(1.005), reference=both).worst_setting == YARDSTICK


def scaled(factor: float) -> ModelProto:
    return parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        model (float[8] x) => (float[8] y) <float c = {{{factor}}}> {{ y = Mul(x, c) }}
    """)


def test_runtimes_and_precisions_name_settings() -> None:
    assert runtime_names()[:2] == ["onnxruntime", "openvino"]
    assert setting_of("onnxruntime", "float32") == "deployed"
    assert setting_of("openvino", "float32") == "openvino"
    assert setting_of("openvino", "bfloat16") == "openvino_bfloat16"
    with pytest.raises(InputError, match="onnxruntime does not compute in bfloat16"):
        setting_of("onnxruntime", "bfloat16")
    with pytest.raises(InputError, match="did you mean openvino"):
        setting_of("openvin", "float32")


def test_a_runtime_that_is_not_installed_stands_in_no_others_way(
    coarse: Coarse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    monkeypatch.delitem(sys.modules, "rlflow.runtime.openvino_runtime", raising=False)
    assert runtime_names() == ["onnxruntime", "openvino", "coarse"]
    assert installed_runtimes() == ["onnxruntime", "coarse"]


def test_code_that_names_a_runtime_is_in_the_files_that_one_adds() -> None:
    """The third is pyproject.toml; docstrings may name it as an example."""
    source = REPOSITORY / "src/rlflow"
    naming = {path.relative_to(source).as_posix() for path in source.rglob("*.py") if names(path, "openvino")}
    assert naming == {"runtime/openvino_runtime.py", "runtime/runtimes.py"}


def names(path: Path, word: str) -> bool:
    """True if a module's code has the word, in whatever it says but docstrings."""
    code = list(ast.walk(ast.parse(path.read_text())))
    docstrings = {id(node.value) for node in code if isinstance(node, ast.Expr)}
    words = (node for node in code if isinstance(node, ast.Constant | ast.Name | ast.alias))
    return any(word in ast.dump(node) for node in words if id(node) not in docstrings)


def test_a_model_is_optimised_for_the_runtime_in_which_it_will_run(setting: str) -> None:
    gate = GateConfig(draws=1, rounds=2, runs_per_round=1, tolerance=COARSE)
    found = rlflow.optimise(
        zoo.build("tiny_chain"), method="greedy", setting=setting, gate=gate, budget_s=120.0, cost_model="analytic"
    )
    document = found.report.to_json()
    assert document["setting"] == setting
    assert set(document["latency"]) == {setting}
    assert setting in document["equivalence"]["by_setting"]
    assert found.report.steps
