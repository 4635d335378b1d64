"""What becomes of damaged files: each is refused in one sentence, or exported as a valid model of equal outputs."""

import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

import onnx
import onnxruntime

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.errors import GraphError, InputError
from rlflow.onnx_io import check_model, from_onnx, read_model, to_onnx
from rlflow.optimise.gate import GateConfig, judged
from support.conformance.backend import load_tests
from support.conformance.guarded_process import GuardedProcess
from support.conformance.mutation import mutated
from support.zoo_names import SMALL

VALID = "valid"
REFUSED = "refused"
NO_TEXT = "refused for a text that is not UTF-8"
WITHOUT_VALUE = "a constant expression has no value"
EXPORTED = "exported"
EQUAL = "exported, and equal where ONNX Runtime runs it"
_SOUND = (REFUSED, NO_TEXT, WITHOUT_VALUE, EXPORTED, EQUAL)

_FROM_THE_ZOO = "bert conv gpt2 loop mlp nasrnn t5_decoder tiny_merge tiny_scale tiny_transpose vgg19 vit".split()
_FROM_THE_SUITE = (
    "attention_4d averagepool_2d_pads constant_pad constantofshape_float_ones conv_with_strides_padding gather_0 if "
    "loop13_seq optional_get_element_tensor quantizelinear range_float_type_positive_delta "
    "reduce_sum_do_not_keepdims_example reshape_negative_dim resize_upsample_scales_nearest scan_sum "
    "sequence_insert_at_front slice split_variable_parts_1d_opset13 squeeze unsqueeze_two_axes"
).split()
_WEIGHTS = "weights.bin"


@dataclass
class Toll:
    """What became of how many files; `failures` has one sentence or traceback for each that neither was refused nor
    survived, with the seed that makes it again.
    """

    accepted_by_onnx: int = 0
    accepted_and_refused: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, int]:
        """As schema `conformance` describes it."""
        return {
            "accepted_and_refused": self.accepted_and_refused,
            "files": self.outcomes.total() + len(self.failures),
            "accepted_by_onnx": self.accepted_by_onnx,
            "refused": self.outcomes[REFUSED] + self.outcomes[NO_TEXT],
            "no_text": self.outcomes[NO_TEXT],
            "without_value": self.outcomes[WITHOUT_VALUE],
            "exported": self.outcomes[EXPORTED] + self.outcomes[EQUAL],
            "equal": self.outcomes[EQUAL],
            "failures": len(self.failures),
        }

    def take(self, seeds: Iterable[int]) -> None:
        """A file for each seed, one after another in the same place."""
        with (
            tempfile.TemporaryDirectory() as folder,
            GuardedProcess(fate_of) as fate,
            GuardedProcess(validity_of) as validity,
            GuardedProcess(opening_of) as opening,
        ):
            path = Path(folder) / "model.onnx"
            (Path(folder) / _WEIGHTS).write_bytes(_outside_its_file()[1])
            for seed in seeds:
                random = Random(seed)
                names, content = mutated(random, random.choice(victims()))
                path.write_bytes(content)
                accepted = validity(path) == VALID
                self.accepted_by_onnx += accepted
                outcome = fate(path)
                self.accepted_and_refused += accepted and outcome in (REFUSED, NO_TEXT)
                if accepted and outcome == REFUSED and opening(path) == VALID:
                    outcome = "refused, but onnx and ONNX Runtime accept it"
                if outcome in _SOUND:
                    self.outcomes[outcome] += 1
                else:
                    self.failures.append(f"seed {seed}, {names}: {outcome}")
            left = sorted(p.name for p in Path(folder).iterdir())
            if left != ["model.onnx", _WEIGHTS]:
                self.failures.append(f"files left behind: {left}")


@cache
def victims() -> list[bytes]:
    """Models that are damaged: of the zoo, of onnx's own tests, and one with weights beside it."""
    small = [zoo.build(name, **SMALL.get(name, {})).SerializeToString() for name in _FROM_THE_ZOO]
    tests = {test.name.removeprefix("test_"): test for test in load_tests("node")}
    nodes = [tests[name].model.SerializeToString() for name in _FROM_THE_SUITE]
    return [*small, *nodes, _outside_its_file()[0]]


@cache
def _outside_its_file() -> tuple[bytes, bytes]:
    """A model whose weights lie beside it, and these."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save_model(
            zoo.build("tiny_transpose"), path, save_as_external_data=True, location=_WEIGHTS, size_threshold=16
        )
        return path.read_bytes(), (Path(folder) / _WEIGHTS).read_bytes()


def validity_of(path: Path) -> str:
    """Whether the onnx package by itself finds nothing wrong."""
    try:
        onnx.load(path, load_external_data=False)
        onnx.checker.check_model(str(path))
    except Exception as error:
        return type(error).__name__
    return VALID


def opening_of(path: Path) -> str:
    """Whether ONNX Runtime by itself opens it."""
    try:
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:
        return type(error).__name__
    return VALID


def fate_of(path: Path) -> str:
    """One of the sound outcomes, or what is wrong."""
    try:
        graph = from_onnx(path)
    except InputError as error:
        if not _is_one_sentence(str(error)) or str(path) not in str(error):
            return f"refused badly: {error}"
        return NO_TEXT if "not UTF-8" in str(error) else REFUSED
    try:
        exported = to_onnx(graph)
        check_model(exported)
    except GraphError as error:
        expected = _is_one_sentence(str(error)) and "cannot be evaluated" in str(error)
        return WITHOUT_VALUE if expected else f"not exported: {error}"
    return _compared(path, exported)


def _is_one_sentence(message: str) -> bool:
    return "\n" not in message and len(message) < 400


def _compared(path: Path, exported: onnx.ModelProto) -> str:
    """As `rlflow optimise` finds out whether it can say anything of the model."""
    original = read_model(path)
    reason = judged(original, GateConfig(draws=1)).unjudgeable
    if reason:
        return f"not tried: {reason}" if "\n" in reason else EXPORTED
    report = compare(original, exported, draws=1)
    return EQUAL if report.equivalent else report.summary
