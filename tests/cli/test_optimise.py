"""The command line as a person meets it: real files, real ONNX Runtime, one clear sentence where something is wrong."""

import json
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.onnx_models import save
from support.pages import content_of
from support.small_models import foldable_model

import rlflow as library
from rlflow import schemas
from rlflow.equivalence.compare import compare
from rlflow.runtime.hardware import usable_cores
from rlflow.runtime.session import open_session, run
from rlflow.runtime.session_options import SessionOptions
from rlflow.schemas.optimise import DispatchReport, OptimiseReport


def interface(path):
    model = onnx.load(str(path))
    return [[(v.name, str(v.type)) for v in values] for values in (model.graph.input, model.graph.output)]


SMALL_BERT = {"layers": 1, "hidden": 64, "heads": 2, "intermediate": 128, "sequence": 16, "vocabulary": 50}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("bert", SMALL_BERT),
        ("conv", {}),
        ("loop", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_model_goes_in_and_an_equal_one_comes_out(rlflow, tmp_path, name, settings):
    source, target = save(tmp_path / "in.onnx", name, **settings), tmp_path / "out.onnx"
    code, out, err = rlflow("optimise", source, "-o", target, "--budget", "6s", "--json")
    assert code == 0, err
    report = json.loads(out)
    schemas.validate(OptimiseReport, report)
    onnx.checker.check_model(str(target))
    assert interface(target) == interface(source)
    agreement = compare(source, target, draws=2, seed=7)
    assert agreement.equivalent, agreement.reason
    assert agreement.non_vacuous_draws == 2
    if report["written"] == "original" and not (report["session_options"] or {}).get("options"):
        assert target.read_bytes() == source.read_bytes()


def test_a_model_that_was_asked_for_before_is_answered_from_what_is_kept(rlflow, tmp_path):
    """Whatever it is called, by text and as JSON; not for a longer budget, not with --anew, and not for a page."""
    source, target = save(tmp_path / "in.onnx", "tiny_merge"), tmp_path / "out.onnx"

    def report(source, *options):
        options = ("--method", "greedy", "--default-options", "--json", *options)
        code, out, err = rlflow("optimise", source, "-o", target, *options)
        assert code == 0, err
        assert target.read_bytes() == source.read_bytes()  # no rewrite of it is worth anything by these prices
        target.unlink()
        return json.loads(out)

    first = report(source, "--budget", "6s")
    renamed = source.rename(tmp_path / "renamed.onnx")
    again = report(renamed, "--budget", "5s")
    assert first["kept_at"] is None
    assert again == first | {"input": str(renamed), "kept_at": again["kept_at"]}
    schemas.validate(OptimiseReport, again)
    asked = ("--method", "greedy", "--default-options", "--budget", "6s")
    code, out, _ = rlflow("optimise", renamed, "-o", target, *asked)
    assert (code, f"on {again['kept_at']} with 6 s: --anew optimises it again" in out) == (0, True)
    for options in (("--budget", "7s"), ("--budget", "7s", "--anew"), ("--report", tmp_path / "page.html")):
        assert report(renamed, *options)["kept_at"] is None


def test_sessions_have_as_many_threads_as_are_asked_for_or_all_cores(rlflow, tmp_path):
    """What is kept of this machine depends on them, too."""
    source, target = save(tmp_path / "in.onnx", "conv"), tmp_path / "out.onnx"
    reports = []
    for threads in (("--threads", "1"), ("--threads", "2"), ()):
        options = (*threads, "--method", "greedy", "--budget", "6s", "--json")
        code, out, err = rlflow("optimise", source, "-o", target, *options)
        assert code == 0, err
        reports.append(json.loads(out))
    assert [report["threads"] for report in reports] == [1, 2, usable_cores()]
    assert reports[0]["hardware"] != reports[1]["hardware"]
    code, _, err = rlflow("optimise", source, "-o", target, "--threads", "0")
    assert code == 2
    assert "--threads" in err


@pytest.mark.skipif(usable_cores() < 2, reason="there are no fewer threads to try")
def test_options_that_make_it_faster_are_written_and_told(rlflow, tmp_path):
    """The given model is run without any optimisation, as it says; on fewer threads it is run with all of them."""
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    unoptimised = SessionOptions(graph_optimization_level="ORT_DISABLE_ALL")
    onnx.save(unoptimised.put_into(foldable_model()), source)
    code, out, err = rlflow("optimise", source, "-o", target, "--method", "greedy", "--budget", "60s", "--json")
    assert code == 0, err
    told, options = json.loads(out)["session_options"], SessionOptions.of(target)
    assert options.intra_op_num_threads == 1
    assert told["options"] == options.to_json() == json.loads((tmp_path / "out.onnx.options.json").read_text())
    assert json.dumps(str(target)) in told["python"][-1]
    code, out, _ = rlflow("optimise", source, "-o", target, "--method", "greedy", "--budget", "60s")
    assert "\n  options.intra_op_num_threads = 1\n" in out


def test_a_model_for_another_runtime_is_checked_and_timed_there(rlflow, tmp_path):
    pytest.importorskip("openvino")
    source, target = save(tmp_path / "in.onnx", "conv"), tmp_path / "out.onnx"
    options = ("--runtime", "openvino", "--method", "greedy", "--budget", "30s", "--json")
    code, out, err = rlflow("optimise", source, "-o", target, *options)
    assert code == 0, err
    report = json.loads(out)
    schemas.validate(OptimiseReport, report)
    assert (report["setting"], report["settings"]) == ("openvino", [])
    assert set(report["equivalence"]["by_setting"]) <= {"as_written", "openvino"}
    assert set(report["latency"]) <= {"openvino"}


def test_auto_has_a_row_of_each_runtime_and_precision(rlflow, tmp_path):
    pytest.importorskip("openvino")
    source, target = save(tmp_path / "in.onnx", "mlp"), tmp_path / "out.onnx"
    options = ("--runtime", "auto", "--method", "greedy", "--budget", "60s", "--json")
    code, out, err = rlflow("optimise", source, "-o", target, *options)
    assert code == 0, err
    report = json.loads(out)
    schemas.validate(OptimiseReport, report)
    first, second, coarse = report["settings"]
    assert [each["setting"] for each in report["settings"]] == ["deployed", "openvino", "openvino_bfloat16"]
    assert first["is_right"]
    assert second["is_right"]
    assert second["best"]["ratio"] > 0
    assert bool(coarse["best"]) != bool(coarse["left_because"]), "this processor has bfloat16, or the row says so"
    assert report["setting"] != "openvino_bfloat16", "nobody accepted its error"
    delivered = next(each for each in report["settings"] if each["setting"] == report["setting"])
    assert (report["written"] == "optimised") == delivered["is_better"]


@pytest.mark.parametrize("runtime", ["openvino", "auto"])
def test_a_runtime_that_is_not_installed_says_what_to_install(refused, tmp_path, monkeypatch, runtime):
    monkeypatch.setitem(sys.modules, "openvino", None)
    monkeypatch.delitem(sys.modules, "rlflow.runtime.openvino_runtime", raising=False)
    source = save(tmp_path / "in.onnx", "mlp")
    said = refused("optimise", source, "-o", tmp_path / "out.onnx", "--runtime", runtime)
    assert "needs openvino, which is not installed: pip install 'rlflow[openvino]'" in said


def test_what_is_read_of_an_output_is_all_that_is_computed(rlflow, tmp_path):
    """The original, read in the same way, is what it is compared with, here and by the command."""
    source, target = save(tmp_path / "in.onnx", "bert", **SMALL_BERT), tmp_path / "out.onnx"
    read = ("--read", "last_hidden_state[:, 0]")
    code, out, err = rlflow("optimise", source, "-o", target, *read, "--method", "greedy", "--budget", "8s", "--json")
    assert code == 0, err
    assert json.loads(out)["read"] == ["last_hidden_state[:, 0]"]
    (output,) = onnx.load(str(target)).graph.output
    assert output.name == "last_hidden_state"
    assert [axis.dim_value for axis in output.type.tensor_type.shape.dim] == [1, 64]
    assert rlflow("equivalence", source, target, *read)[0] == 0
    assert rlflow("equivalence", source, target)[0] != 0
    code, _, err = rlflow("optimise", source, "-o", target, "--read", "logits[:, 0]")
    assert code == 2
    assert "there is no output 'logits': choose from last_hidden_state" in err


def test_what_cannot_be_improved_comes_back_byte_for_byte(rlflow, tmp_path):
    """With every rule disabled by name there is nothing to do, and the report says why the original was written."""
    source, target = save(tmp_path / "in.onnx", "conv"), tmp_path / "out.onnx"
    rules = json.loads(rlflow("rules", "list", "--json")[1])["rules"]
    disabled = [part for rule in rules for part in ("--disable", rule["id"])]
    code, out, _ = rlflow("optimise", source, "-o", target, "--method", "greedy", "--default-options", *disabled)
    assert code == 0
    assert "the original model (no sequence of rewrites lowered its predicted cost)" in out
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mode == source.stat().st_mode, "as open to others as any new file, which the source is"


@pytest.mark.slow
def test_a_rule_that_is_shipped_too_counts_once_and_what_was_measured_is_kept(rlflow, repository, tmp_path):
    """The library says the same as the file: its own rule is applied. What was measured is in the user's cache."""
    nodes = [
        helper.make_node(op, [x], [y]) for op, x, y in (("Relu", "x", "a"), ("Relu", "a", "b"), ("Tanh", "b", "y"))
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, 64]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "twice", ends[:1], ends[1:])
    source, rules = tmp_path / "in.onnx", repository / "examples/own_rules.py"
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), source)
    options = ("--rules", rules, "--cost-model", "measured", "--method", "greedy")
    code, out, err = rlflow("optimise", source, "-o", tmp_path / "out.onnx", *options, "--json")
    assert code == 0, err
    report = json.loads(out)
    (step,) = report["steps"]
    assert step["rule"].startswith("algebra-")
    assert report["prices_measured"] > 0
    assert len(list(tmp_path.rglob("prices*"))) == 1


OWN = """
from rlflow.rules.dsl import Rewrite, Tensor, rule
from rlflow.rules.dsl.operators import Add, Mul, Relu, Tanh


@rule("half-of-the-double")
def half_of_the_double(x: Tensor) -> Rewrite:
    return Rewrite(Mul(Add(x, x), 0.5), x)
"""
FALSE = (
    OWN
    + """

@rule("relu-of-tanh")
def relu_of_tanh(x: Tensor) -> Rewrite:
    return Rewrite(Relu(Tanh(x)), Tanh(x))
"""
)
DOUBLE = """
    <ir_version: 8, opset_import: ["" : 17]>
    double (float[64, 64] x) => (float[64, 64] y) <float half = {0.5}> { a = Add(x, x)  b = Mul(a, half)  y = Tanh(b) }
"""


@pytest.mark.slow
def test_own_rules_are_verified_and_used_besides_the_shipped_ones(rlflow, tmp_path):
    """Not vacuous: without the file there is nothing to rewrite; with it, its rule is what was applied."""
    source, target, own = tmp_path / "in.onnx", tmp_path / "out.onnx", tmp_path / "own.py"
    onnx.save(onnx.parser.parse_model(DOUBLE), source)
    own.write_text(OWN)
    options = ("--method", "greedy", "--cost-model", "analytic", "--budget", "2m", "--json")
    applied = []
    for more in ((), ("--rules", own)):
        code, out, err = rlflow("optimise", source, "-o", target, *options, *more)
        assert code == 0, err
        applied.append([step["rule"] for step in json.loads(out)["steps"]])
    assert applied[0] == []
    assert [rule.partition("-")[0] for rule in applied[1]] == ["user"]


def test_a_false_rule_is_refused_before_the_work(rlflow, tmp_path):
    source, target, own = save(tmp_path / "in.onnx", "tiny_chain"), tmp_path / "out.onnx", tmp_path / "own.py"
    own.write_text(FALSE)
    code, out, err = rlflow("optimise", source, "-o", target, "--rules", own)
    assert (code, out) == (1, "")
    line = FALSE.splitlines().index('@rule("relu-of-tanh")') + 1
    assert f"{own}:{line}: " in err
    assert "is refuted" in err
    assert not target.exists()


SEVERAL = (
    *("--method", "greedy", "--cost-model", "analytic", "--budget", "60s", "--default-options"),
    *("--shape", "image=1x3x32x32+4x3x32x32"),
)
"""By these prices to fold a BatchNormalization pays, which holds at every size."""


@pytest.mark.slow
def test_a_model_for_several_sizes_is_told_of_by_size(rlflow, tmp_path):
    """On the page, too; what was decided of all is kept."""
    source, target, page = tmp_path / "in.onnx", tmp_path / "out.onnx", tmp_path / "page.html"
    save(source, "conv", batch="batch")
    code, out, err = rlflow("optimise", source, "-o", target, *SEVERAL, "--report", page, "--json")
    assert code == 0, err
    report, told = json.loads(out), content_of(page.read_text(encoding="utf-8"))
    assert [row["shapes"] for row in report["sizes"]] == [{"image": [1, 3, 32, 32]}, {"image": [4, 3, 32, 32]}]
    assert [where.split(", ")[-1] for where, *_ in told["latency"]] == ["image=1x3x32x32", "image=4x3x32x32"]
    assert interface(target) == interface(source)
    for rows in (1, 2, 4):
        assert compare(source, target, dimensions={"batch": rows}).equivalent
    code, out, _ = rlflow("optimise", source, "-o", target, *SEVERAL, "--json")
    assert code == 0
    assert len(json.loads(out)["sizes"]) == 2


@pytest.mark.slow
def test_dispatch_writes_a_model_for_each_size_and_a_table(rlflow, tmp_path):
    source, target = save(tmp_path / "in.onnx", "conv", batch="batch"), tmp_path / "out.onnx"
    code, out, err = rlflow("optimise", source, "-o", target, *SEVERAL, "--dispatch", "--json")
    assert code == 0, err
    told = json.loads(out)
    schemas.validate(DispatchReport, told)
    files = ["out.1x3x32x32.onnx", "out.4x3x32x32.onnx"]
    assert [report["output"] for report in told["reports"]] == [str(tmp_path / file) for file in files]
    assert told["table"] == f"{target}.dispatch.json"
    assert not target.exists()
    table = json.loads((tmp_path / "out.onnx.dispatch.json").read_text())
    assert [row["file"] for row in table["models"]] == files
    for row, report in zip(table["models"], told["reports"], strict=True):
        assert (row["shapes"], row["written"], row["reason"]) == tuple(
            report[key] for key in ("shapes", "written", "reason")
        )
        assert row["latency"] in [None, *report["latency"].values()]
    dispatch = library.dispatch_session(told["table"])
    for rows in (4, 1):
        image = np.random.default_rng(rows).standard_normal((rows, 3, 32, 32), np.float32)
        (logits,) = dispatch.run(None, {"image": image})
        (expected,) = run(open_session(onnx.load(source), "as_written"), {"image": image}).values()
        np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_a_page_is_written_beside_the_model(rlflow, tmp_path):
    """It says what the report says, and by which words it was asked for."""
    source, target, page = save(tmp_path / "in.onnx", "tiny_chain"), tmp_path / "out.onnx", tmp_path / "report.html"
    asked = ("optimise", source, "-o", target, "--method", "greedy", "--report", page, "--json")
    code, out, err = rlflow(*asked)
    assert code == 0, err
    report, told = json.loads(out), content_of(page.read_text(encoding="utf-8"))
    assert [step["rule"] for step in told["steps"]] == [step["rule"] for step in report["steps"]]
    assert f"Wrote {target}: " in told["verdict"]["text"]
    assert told["replay"]["commands"][0][1] == f"rlflow {' '.join(map(str, asked))}"


def test_the_steps_on_a_page_can_be_replayed(rlflow, tmp_path):
    """By the very command that stands there, from the file that the page saves."""
    source, page = save(tmp_path / "in.onnx", "tiny_chain"), tmp_path / "report.html"
    rlflow("optimise", source, "-o", tmp_path / "out.onnx", "--method", "greedy", "--report", page)
    replay = content_of(page.read_text(encoding="utf-8"))["replay"]
    (tmp_path / replay["file"]["name"]).write_text(replay["file"]["text"])
    _, command, trajectory, *rest = replay["commands"][1][1].split()
    code, _out, err = rlflow(command, tmp_path / trajectory, rest[0], "-o", tmp_path / "replayed.onnx")
    assert code == 0, err
    assert compare(source, tmp_path / "replayed.onnx").equivalent


def test_a_page_has_a_name_of_its_kind(refused, tmp_path):
    source = save(tmp_path / "in.onnx", "tiny_chain")
    said = refused("optimise", source, "-o", tmp_path / "out.onnx", "--report", tmp_path / "report.pdf")
    assert "let it end in .html" in said
