"""Several models in one command, each where it lies: what is faster takes its place, once, and the exit code tells."""

import re

import pytest
from support.onnx_models import save

from rlflow.equivalence.compare import compare
from rlflow.optimise import in_place

FAST = ("--method", "greedy", "--threads", "1", "--budget", "20s")


@pytest.fixture
def models(tmp_path):
    """One that gets several times as fast, and one of which no rewrite is worth anything by predicted prices."""
    return [save(tmp_path / f"{name}.onnx", name) for name in ("tiny_chain", "mlp")]


def test_models_are_replaced_once_and_the_exit_code_tells(rlflow, tmp_path, models):
    """First with --check, which writes nothing; the table says the same as the lines."""
    chain, mlp = models
    before = [path.read_bytes() for path in models]
    code, out, err = rlflow("optimise-all", *models, "--check", *FAST)
    assert (code, err) == (1, "")
    assert f"{chain}: can be optimised; " in out
    assert out.endswith("1 of 2 models can be optimised\n")
    assert [path.read_bytes() for path in models] == before
    table = tmp_path / "table.md"
    code, out, err = rlflow("optimise-all", *models, *FAST, "--markdown", table)
    assert (code, err) == (1, "")
    assert re.search(rf"^{chain}: optimised; .* times as fast", out, re.MULTILINE)
    assert re.search(rf"^{mlp}: as it was: no sequence of rewrites", out, re.MULTILINE)
    assert compare(save(tmp_path / "original.onnx", "tiny_chain"), chain, draws=2, seed=7).equivalent
    assert mlp.read_bytes() == before[1]
    rows = [line.split(" | ") for line in table.read_text().splitlines() if line.startswith("| `")]
    assert [(row[0], row[1]) for row in rows] == [
        (f"| `{chain}`", "optimised"),
        (f"| `{mlp}`", "as it was: no sequence of rewrites lowered its predicted cost"),
    ]
    assert float(rows[0][4]) > 1
    assert rows[0][5].startswith("4 → 1")
    assert {len(row) for row in rows} == {6}
    written = [path.read_bytes() for path in models]
    assert rlflow("optimise-all", *models, *FAST)[0] == 0, "nothing is left to do"
    assert [path.read_bytes() for path in models] == written
    assert rlflow("optimise-all", *models, "--check", *FAST)[0] == 0


def test_one_that_cannot_be_used_does_no_harm_to_the_others(rlflow, tmp_path, models):
    """Its sentence is on standard error, and in the table, whose cells it cannot end."""
    (tmp_path / "a|b.onnx").write_text("no model")
    table = tmp_path / "table.md"
    code, out, err = rlflow("optimise-all", tmp_path / "a|b.onnx", models[1], *FAST, "--markdown", table)
    assert code == 2
    assert err.startswith(f"{tmp_path}/a|b.onnx: cannot be used: ")
    assert out.endswith("0 of 2 models optimised\n")
    assert f"| `{models[1]}` | as it was: " in table.read_text()
    assert f"| `{tmp_path}/a\\|b.onnx` | cannot be used: " in table.read_text()


def test_an_interrupt_leaves_the_model_as_it_is(rlflow, models, monkeypatch):
    """Whatever had been found until then: it was not timed against the original."""
    before = models[0].read_bytes()

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(in_place, "optimise", interrupted)
    code, _, err = rlflow("optimise-all", *models, *FAST)
    assert (code, err) == (130, "rlflow: interrupted; no file was left half written\n")
    assert models[0].read_bytes() == before


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--budget", "soon"), "is not a budget"),
        (("--shape", "x"), "is not a shape"),
        (("--markdown", "absent/table.md"), "there is no folder"),
        (("--runtime", "onnx_runtime"), "onnx_runtime"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_options_are_checked_before_anything_is_read(refused, options, reason):
    assert reason in refused("optimise-all", "absent.onnx", *options)
