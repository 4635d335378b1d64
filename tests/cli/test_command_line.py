"""The command line as a person meets it: real files, real ONNX Runtime, one clear sentence where something is wrong."""

import json

import numpy as np
import onnx
import pytest
from trajectory.recording import FOLDER as RECORDED
from trajectory.recording import MODELS

from rlflow import schemas, zoo
from rlflow.cli.arguments import parse_budget
from rlflow.equivalence.compare import compare
from rlflow.errors import InputError
from rlflow.rules.library import load


def save(path, name, **settings):
    onnx.save(zoo.build(name, **settings), str(path))
    return path


def interface(path):
    model = onnx.load(str(path))
    return [[(v.name, str(v.type)) for v in values] for values in (model.graph.input, model.graph.output)]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("bert", {"layers": 1, "hidden": 64, "heads": 2, "intermediate": 128, "sequence": 16, "vocabulary": 50}),
        ("conv", {}),
        ("loop", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_model_goes_in_and_an_equal_one_comes_out(rlflow, tmp_path, name, settings):
    source, target = save(tmp_path / "in.onnx", name, **settings), tmp_path / "out.onnx"
    code, out, err = rlflow("optimise", source, "-o", target, "--budget", "2s", "--json")
    assert code == 0, err
    report = json.loads(out)
    schemas.validate("optimise", report)
    onnx.checker.check_model(str(target))
    assert interface(target) == interface(source)
    agreement = compare(source, target, draws=2, seed=7)
    assert agreement.equivalent, agreement.reason
    assert agreement.non_vacuous_draws == 2
    if report["written"] == "original":
        assert target.read_bytes() == source.read_bytes()


def test_what_cannot_be_improved_comes_back_byte_for_byte(rlflow, tmp_path):
    """With every rule disabled by name there is nothing to do, and the report says why the original was written."""
    source, target = save(tmp_path / "in.onnx", "conv"), tmp_path / "out.onnx"
    rules = json.loads(rlflow("rules", "list", "--json")[1])["rules"]
    disabled = [part for rule in rules for part in ("--disable", rule["id"])]
    code, out, _ = rlflow("optimise", source, "-o", target, "--method", "greedy", *disabled)
    assert code == 0
    assert "the original model (no sequence of rewrites lowered its predicted cost)" in out
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mode == source.stat().st_mode, "as open to others as any new file, which the source is"


def damaged(tmp_path, kind):
    path = tmp_path / "in.onnx"
    match kind:
        case "text":
            path.write_text("this is no model, but a letter to a friend\n" * 20)
        case "empty":
            path.write_bytes(b"")
        case "truncated":
            content = save(path, "mlp").read_bytes()
            path.write_bytes(content[: len(content) // 2])
        case "folder":
            path.mkdir()
    return path


@pytest.mark.parametrize("kind", ["missing", "text", "empty", "truncated", "folder"])
def test_bad_models_are_refused_in_one_sentence(rlflow, tmp_path, kind):
    source, target = damaged(tmp_path, kind), tmp_path / "out.onnx"
    code, out, err = rlflow("optimise", source, "-o", target)
    assert (code, out) == (2, "")
    assert err.startswith("rlflow: ")
    assert str(source) in err
    assert "Traceback" not in err
    assert err.count("\n") == 1
    assert {p.name for p in tmp_path.iterdir()} <= {"in.onnx", "cache"}, "something half-written was left"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--method", "magic"], "there is no method 'magic': choose one of"),
        (["--setting", "fast"], "there is no setting 'fast': choose one of"),
        (["--budget", "-5s"], "'-5s' is not a budget"),
        (["--budget", "soon"], "'soon' is not a budget"),
        (["--budget", "0s"], "'0s' is not a budget"),
        (["--disable", "no-such-rule"], "the library has no rule 'no-such-rule'"),
        (["--method", "rlflow", "--policy", "nowhere"], "no trained policy in nowhere"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(rlflow, tmp_path, options, sentence):
    source, target = save(tmp_path / "in.onnx", "tiny_chain"), tmp_path / "out.onnx"
    code, out, err = rlflow("optimise", source, "-o", target, *options)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert not target.exists()


@pytest.mark.parametrize("place", ["missing/out.onnx", "in.onnx/out.onnx", "."])
def test_places_that_cannot_be_written_are_refused_before_the_work(rlflow, tmp_path, place):
    source = save(tmp_path / "in.onnx", "tiny_chain")
    before = source.read_bytes()
    code, out, err = rlflow("optimise", source, "-o", tmp_path / place)
    assert (code, out) == (2, "")
    assert err.startswith("rlflow: ")
    assert err.count("\n") == 1
    assert source.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir() if p.name != "cache"] == ["in.onnx"]


def test_a_read_only_file_system_is_refused(rlflow, tmp_path):
    source = save(tmp_path / "in.onnx", "tiny_chain")
    code, _, err = rlflow("optimise", source, "-o", "/proc/out.onnx")
    assert code == 2
    assert "/proc cannot be written to" in err


@pytest.mark.parametrize(("text", "seconds"), [("60s", 60), ("500ms", 0.5), ("1.5m", 90), ("2", 2), ("1h", 3600)])
def test_budgets(text, seconds):
    assert parse_budget(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1 day", "nan", "1e9999s", "0"])
def test_impossible_budgets(text):
    with pytest.raises(InputError, match="is not a budget"):
        parse_budget(text)


@pytest.mark.parametrize(
    ("family", "says"),
    [("nonsense=2", "unknown family"), ("algebra", "as in algebra=2"), ("algebra=0", "as in algebra=2")],
)
def test_a_family_that_cannot_be_enumerated_is_refused(rlflow, tmp_path, family, says):
    code, _, err = rlflow("rules", "generate", "--family", family, "-o", tmp_path / "library.jsonl")
    assert code == 2
    assert says in err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.slow
def test_one_family_alone_is_enumerated(rlflow, tmp_path):
    path = tmp_path / "library.jsonl"
    code, out, _ = rlflow("rules", "generate", "--family", "join=1", "-o", path, "--json")
    assert code == 0
    document = json.loads(out)
    schemas.validate("rules_generate", document)
    assert set(document["families"]) == {"join"}
    assert path.exists()


def test_rules_are_listed_shown_and_verified(rlflow):
    code, out, _ = rlflow("rules", "list", "--json")
    document = json.loads(out)
    schemas.validate("rules_list", document)
    assert code == 0
    assert len(document["rules"]) >= 40
    code, out, _ = rlflow("rules", "show", "merge-3-matmuls")
    assert code == 0
    assert "MatMul(x, w0)" in out
    assert "verified at" in out
    assert rlflow("rules", "show", "nonsense")[0] == 2


@pytest.mark.slow
def test_every_rule_can_be_shown_as_a_document_and_as_a_picture(rlflow, tmp_path):
    for rule in load().rules:
        schemas.validate("rules_show", rule.to_json())
    for rule in json.loads(rlflow("rules", "list", "--json")[1])["rules"][::70]:
        code, out, _ = rlflow("rules", "show", rule["id"], "--json")
        assert code == 0
        assert json.loads(out) == load().get(rule["id"]).to_json()
    picture = tmp_path / "rule.svg"
    assert rlflow("rules", "show", "merge-3-matmuls", "--picture", picture)[0] == 0
    drawn = picture.read_text()
    assert drawn.startswith("<?xml")
    assert drawn.count("<path") > 12  # six operators and variables, three outputs, and what connects them
    code, _, err = rlflow("rules", "show", "merge-3-matmuls", "--picture", tmp_path / "rule.txt")
    assert code == 2
    assert "txt" in err


def test_a_library_is_verified_again_and_compared_with_another(rlflow, tmp_path):
    """The other library lacks one rule and has a second one under a new certificate."""
    from dataclasses import replace

    from rlflow.rules import library
    from rlflow.rules.library import Library
    from rlflow.rules.verification.verify import VerificationConfig, certified

    shipped = library.load()
    dropped, again, kept = shipped.rules[:3]
    other = certified(replace(again, certificate=None), VerificationConfig(shapes=16, seed=5))
    Library((other, kept)).save(tmp_path / "few.jsonl")
    code, out, _ = rlflow("rules", "verify", "--library", tmp_path / "few.jsonl", "--json")
    report = json.loads(out)
    schemas.validate("rules_verify", report)
    assert code == 0
    assert report["rules_verified"] == 2
    Library((dropped, again, kept)).save(tmp_path / "more.jsonl")
    code, out, _ = rlflow("rules", "diff", tmp_path / "few.jsonl", tmp_path / "more.jsonl", "--json")
    document = json.loads(out)
    schemas.validate("rules_diff", document)
    assert code == 0
    assert [[rule["id"] for rule in document[key]] for key in ("added", "recertified", "removed")] == [
        [dropped.id],
        [again.id],
        [],
    ]
    assert document["unchanged"] == 1
    code, out, _ = rlflow("rules", "diff", tmp_path / "more.jsonl", tmp_path / "few.jsonl")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[:2]] == [["-", dropped.id], ["~", again.id]]
    assert out.splitlines()[-1] == "0 added, 1 removed, 1 recertified, 1 unchanged"


@pytest.mark.slow
def test_rules_recall_tells_what_becomes_of_each_equation(rlflow, tmp_path):
    path = tmp_path / "foreign.txt"
    path.write_text("3: matmul(matmul(a,b),c) == matmul(a,matmul(b,c))\n9: matmul(a,b) == matmul(b,a)\n")
    code, out, _ = rlflow("rules", "recall", path, "--json")
    document = json.loads(out)
    schemas.validate("rules_recall", document)
    assert code == 0
    assert [(e["number"], e["outcome"]) for e in document["equations"]] == [(3, "instance"), (9, "refuted")]
    assert document["totals"] == {"instance": 1, "derived": 0, "conditional": 0, "refuted": 1, "not_found": 0}
    code, out, _ = rlflow("rules", "recall", path)
    assert code == 0
    assert "the sides differ at a [" in out
    path.write_text("matmul(a,b)\n")
    code, _, err = rlflow("rules", "recall", path)
    assert code == 2
    assert "line 1" in err


def test_zoo_models_are_listed_and_built(rlflow, tmp_path):
    code, out, _ = rlflow("zoo", "list", "--json")
    schemas.validate("zoo_list", json.loads(out))
    assert code == 0
    target = tmp_path / "bert.onnx"
    small = ["layers=1", "hidden=32", "heads=2", "intermediate=64", "sequence=8", "vocabulary=20"]
    code, _, err = rlflow("zoo", "build", "bert", "-o", target, *(p for s in small for p in ("--set", s)))
    assert code == 0, err
    onnx.checker.check_model(str(target))
    assert rlflow("zoo", "build", "bert", "-o", target, "--set", "layers")[0] == 2
    assert rlflow("zoo", "build", "nothing", "-o", target)[0] == 2


def test_a_recorded_trajectory_replays_to_the_same_model(rlflow, tmp_path):
    """Greedy search on a tiny graph, recorded, replayed from the file by the command, and refused on another model."""
    from rlflow.cost.analytic import AnalyticCost
    from rlflow.onnx_io import from_onnx
    from rlflow.optimiser import Budget
    from rlflow.rules import library
    from rlflow.rules.matching.rewriter import Rewriter
    from rlflow.search.greedy import Greedy
    from rlflow.trajectory import record

    source, other = save(tmp_path / "in.onnx", "tiny_chain"), save(tmp_path / "other.onnx", "tiny_chain", seed=1)
    rules = library.load()
    result = Greedy(rules, Rewriter(rules.rules), AnalyticCost()).optimise(from_onnx(source), Budget())
    assert result.trajectory.steps
    recorded, target = tmp_path / "trajectory.jsonl", tmp_path / "out.onnx"
    record.save([result.trajectory], recorded)
    code, out, err = rlflow("replay", recorded, source, "-o", target, "--json")
    assert code == 0, err
    schemas.validate("replay", json.loads(out))
    assert compare(source, target).equivalent
    code, _, err = rlflow("replay", recorded, other)
    assert code == 1
    assert "starts from graph" in err


def test_a_model_that_is_replayed_to_a_file_is_compared_where_its_sizes_are_known(rlflow, tmp_path, caplog):
    """A recorded trajectory over a BERT of open batch: what is written without a shape comes with a warning."""
    name = "bert_open_batch"
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(MODELS[name](), source)
    code, out, err = rlflow("replay", RECORDED / f"{name}.jsonl", source, "-o", target)
    assert code == 0, err
    assert "every hash agrees" in out
    assert "was not compared with the original: its dimensions batch are dynamic" in caplog.text
    target.unlink()
    caplog.clear()
    code, _, err = rlflow("replay", RECORDED / f"{name}.jsonl", source, "-o", target, "--shape", "input_ids=3x8")
    assert code == 0, err
    assert caplog.text == ""
    assert compare(source, target, dimensions={"batch": 3}).equivalent
    code, out, err = rlflow("replay", RECORDED / f"{name}.jsonl", source, "-o", target, "--shape", "ids=3x8")
    assert (code, out) == (2, "")
    assert "no input 'ids'" in err


def test_results_are_checked(rlflow, tmp_path):
    code, _, err = rlflow("check-results", tmp_path)
    assert code == 1, "a folder without results proves nothing"
    assert str(tmp_path) in err
    (tmp_path / "evaluate").mkdir()
    (tmp_path / "evaluate" / "metrics.json").write_text('{"bert": {}}')
    code, _, err = rlflow("check-results", tmp_path)
    assert code == 1
    assert "evaluate/metrics.json" in err


def test_the_library_is_used_from_python_alike(tmp_path):
    import rlflow

    model = zoo.build("tiny_chain")
    optimised = rlflow.optimise(model, method="greedy", budget_s=5.0)
    graph = rlflow.from_onnx(optimised.model)
    again = rlflow.to_onnx(graph)
    assert compare(model, again).equivalent
    assert optimised.report.written in ("optimised", "original")
    assert np.isfinite(optimised.report.improvement_percent)
