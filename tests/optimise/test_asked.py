"""What is asked of `rlflow optimise`: nothing that may change an answer is left out of it, and all of it is heeded."""

import inspect
from dataclasses import fields, replace
from pathlib import Path

import pytest
from support.asked import NOTHING_SAID
from support.onnx_models import save

from rlflow.cli.optimise import NOT_ASKED
from rlflow.cli.optimise import optimise as command
from rlflow.errors import InputError
from rlflow.optimise.answers import Question
from rlflow.optimise.asked import Asked

ASKED = {field.name for field in fields(Asked)}
OTHERWISE = {
    "method": "greedy",
    "setting": "as_written",
    "runtime": "openvino",
    "precision": "bfloat16",
    "tolerance": 1e-3,
    "cost_model": "analytic",
    "rules": Path(__file__).parents[2] / "src/rlflow/rules/library.jsonl",
    "disable": ("a",),
    "strict": True,
    "shape": {"x": (1, 2)},
    "read": ("y[0]",),
    "policy": Path(__file__),
    "trained_on": "bert",
    "passes": "onnx",
    "threads": 2,
    "prove": True,
    "default_options": True,
}
"""Another value of each option."""


def asked_beside(name: str) -> Asked:
    """What is asked where this option may be given otherwise, and counts."""
    if name in ("policy", "trained_on"):
        return replace(NOTHING_SAID, method="rlflow")
    if name in ("precision", "tolerance"):
        return replace(NOTHING_SAID, runtime="openvino", precision="float32" if name == "precision" else "bfloat16")
    return NOTHING_SAID


def test_every_parameter_of_the_command_is_asked_or_changes_no_answer() -> None:
    """A new option that is in neither set fails here; the model itself is part of the question by its content."""
    parameters = set(inspect.signature(command).parameters)
    assert parameters == {"model"} | ASKED | NOT_ASKED
    assert not ASKED & NOT_ASKED
    assert OTHERWISE.keys() == ASKED


@pytest.mark.parametrize("name", sorted(ASKED))
def test_another_value_of_an_option_is_another_question(name: str, tmp_path: Path) -> None:
    model, asked = save(tmp_path / "in.onnx", "tiny_chain"), asked_beside(name)
    digests = {Question.of(model, each).digest for each in (asked, asked, replace(asked, **{name: OTHERWISE[name]}))}
    assert len(digests) == 2


def test_other_sizes_or_their_order_are_another_question(tmp_path: Path) -> None:
    """By the first a search goes."""
    model, sizes = save(tmp_path / "in.onnx", "tiny_chain"), [(1, 2), (1, 3)]
    shapes = [{"x": sizes[0]}, {"x": sizes}, {"x": sizes[::-1]}, {"x": [*sizes, (1, 4)]}]
    assert len({Question.of(model, replace(NOTHING_SAID, shape=shape)).digest for shape in shapes}) == len(shapes)


@pytest.mark.parametrize("name", sorted(ASKED - {"rules"}))
def test_the_call_heeds_every_option(name: str) -> None:
    """A file of rules is read for the call, which tests of the command do."""
    asked = asked_beside(name)
    assert replace(asked, **{name: OTHERWISE[name]}).arguments() != asked.arguments()


@pytest.mark.parametrize(
    ("setting", "runtime", "precision", "settings"),
    [
        ("deployed", "auto", "float32", ["deployed", "openvino", "openvino_bfloat16"]),
        ("deployed", "openvino", "auto", ["openvino", "openvino_bfloat16"]),
        ("deployed", "onnxruntime", "auto", ["deployed"]),
        ("as_written", "onnxruntime", "float32", ["as_written"]),
    ],
)
def test_auto_is_one_setting_and_those_beside_it(
    setting: str, runtime: str, precision: str, settings: list[str]
) -> None:
    """Session options are tried where ONNX Runtime's own optimisation is on."""
    if runtime == "auto":
        pytest.importorskip("openvino")
    asked = replace(NOTHING_SAID, setting=setting, runtime=runtime, precision=precision).arguments()
    assert [asked["setting"], *asked["beside"]] == settings
    assert (asked["session_options"] is not None) == (settings[0] == "deployed")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"precision": "float23"}, "there is no precision 'float23'"),
        ({"setting": "as_written", "runtime": "openvino"}, "is for ONNX Runtime"),
        ({"policy": Path("policy")}, "for --method rlflow alone"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_done(given: dict[str, object], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        replace(NOTHING_SAID, **given)
