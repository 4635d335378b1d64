"""The onnx package's own backend tests as models to import, to rewrite and to export, and what comes of that."""

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter

from rlflow.equivalence.tolerance import tolerance_of
from rlflow.errors import RLFlowError
from rlflow.ir import Graph
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import open_session, run
from support.kernels import all_close, rounding_of_export

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
REWRITES = 5
RULES_AROUND = 3
RAISED_TO = 21
"""An opset in which nearly all rules can be written."""
LAST_OPSET = 25
"""ONNX Runtime opens models of newer ones, and lacks the kernels of operators that have another version there."""
_FIRST_OPSET_THAT_BROADCASTS = 7
_WEIGHTS_ARE_NO_INPUTS = 4  # from this version of the IR on
_SUFFIX = "_outside"
_NUMBERS = frozenset(
    TensorProto.DataType.Value(name)
    for name in "FLOAT DOUBLE FLOAT16 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL".split()
)

Values = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A model with what it is fed, and what ONNX Runtime alone makes of it."""

    name: str
    model: onnx.ModelProto
    runs: list[tuple[Values, Values]]


@dataclass
class Survival:
    """What became of the models of one kind. `differences` has one sentence for each that came to harm, `exceptions` a
    reason for each that survived and was not rewritten as often as the others.
    """

    models: int = 0
    run_by_onnx_runtime: int = 0
    survived: int = 0
    in_context: int = 0
    rewritten: int = 0
    rewrites: int = 0
    differences: list[str] = field(default_factory=list)
    exceptions: dict[str, str] = field(default_factory=dict)
    rules_fired: dict[str, int] = field(default_factory=dict)

    def import_and_export(self, case: Case) -> None:
        """Count a model whose outputs are the same bit for bit, but for sums that the export folds."""
        self.run_by_onnx_runtime += 1
        try:
            graph = from_onnx(case.model)
            session, rounding = _checked_session(to_onnx(graph)), rounding_of_export(graph, case.model)
            same = all(all_close(out, run(session, feeds), rounding) for feeds, out in case.runs)
        except RLFlowError as error:
            self.differences.append(f"{case.name}: {error}")
            return
        self.survived += same
        if not same:
            self.differences.append(f"{case.name}: other outputs")

    def rewrite(self, case: Case, walk: "Walk", lengths: tuple[int, ...] = (REWRITES,)) -> None:
        """The same outputs within rounding after so many random rewrites, and after so many more."""
        self.in_context += 1
        graph, done = from_onnx(case.model), 0
        for length in lengths:
            try:
                graph, steps = walk.on(graph, length - done)
                done += steps
                session = _checked_session(to_onnx(graph))
                close = all(all_close(out, run(session, feeds), tolerance_of(case.model)) for feeds, out in case.runs)
            except RLFlowError as error:
                self.differences.append(f"{case.name}: {error}")
                return
            if not close:
                self.differences.append(f"{case.name}: other outputs after {done} rewrites")
        self.rewritten += done > 0
        self.rewrites += done
        self.rules_fired = walk.rules_fired
        if done < lengths[-1]:
            running = f"after {done} rewrites too few rules match"
            self.exceptions[case.name] = running if graph.order else "all of it is constant: nothing runs"

    def to_json(self) -> dict[str, Any]:
        """As schema `conformance` describes a kind."""
        exceptions = [{"model": name, "reason": reason} for name, reason in self.exceptions.items()]
        return asdict(self) | {"differences": len(self.differences), "exceptions": exceptions}


@dataclass
class Walk:
    """Random rewrites: any of the rules that match, then any place of it, if there are at least so many rules."""

    least_rules: int
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    fired: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Rules by the element types of what they replaced."""

    @cached_property
    def rewriter(self) -> Rewriter:
        return Rewriter(load().rules)

    @property
    def rules_fired(self) -> dict[str, int]:
        return {dtype: len(rules) for dtype, rules in sorted(self.fired.items())}

    def on(self, graph: Graph, steps: int) -> tuple[Graph, int]:
        """The graph after these steps or fewer, and how many they were."""
        for done in range(steps):
            matches = self.rewriter.matches(graph)
            rules = [rule for rule, count in enumerate(matches.counts) if count]
            if len(rules) < self.least_rules:
                return graph, done
            rule = rules[int(self.rng.integers(len(rules)))]
            match = matches[rule][int(self.rng.integers(matches.counts[rule]))]
            for root in match.roots:
                self.fired[graph.type_of(root).dtype].add(match.rule.id)
            graph = self.rewriter.apply(graph, match)
        return graph, steps


def _checked_session(model: onnx.ModelProto) -> Any:
    check_model(model)
    return open_session(model, "as_written")


def load_tests(kind: str) -> list[Any]:
    """onnx's own description of its tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite computes its expectations with overflows and divisions by zero
        from onnx.backend.test.loader import load_model_tests

        return load_model_tests(kind=kind)  # type: ignore[no-any-return]


def case_of(test: Any) -> Case | None:
    """None where ONNX Runtime alone cannot run the model. One of a newer opset is taken as one of the last that it has:
    most operators are the same there, and others are refused.
    """
    try:
        model = test.model or onnx.load(Path(test.model_dir) / "model.onnx")
        for opset in model.opset_import:
            opset.version = min(opset.version, LAST_OPSET) if opset.domain == "" else opset.version
        return run_case(test.name, model, list(_feeds(test, model)))
    except (RLFlowError, TypeError, ValueError, NotImplementedError):
        return None


def run_case(name: str, model: onnx.ModelProto, feeds: list[Values]) -> Case:
    """`RLFlowError` if ONNX Runtime cannot run it."""
    session = open_session(model, "as_written")
    return Case(name, model, [(each, run(session, each)) for each in feeds])


def _feeds(test: Any, model: onnx.ModelProto) -> Iterator[Values]:
    if test.data_sets is not None:
        for inputs, _ in test.data_sets:
            yield {i.name: _decoded(v) for i, v in zip(model.graph.input, inputs, strict=False)}
        return
    for folder in sorted(Path(test.model_dir).glob("test_data_set_*")):
        files = {i.name: (folder / f"input_{k}.pb", i.type) for k, i in enumerate(model.graph.input)}
        yield {name: _decoded(file, kind) for name, (file, kind) in files.items() if file.exists()}


def _decoded(value: Any, kind: onnx.TypeProto | None = None) -> Any:
    if isinstance(value, Path):
        proto = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}.get(
            kind.WhichOneof("value") if kind else "", TensorProto
        )
        return _decoded(proto.FromString(value.read_bytes()))
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def raised(case: Case) -> Case | None:
    """In a newer opset; None where onnx's version converter has no way, or ONNX Runtime then gives other outputs."""
    try:
        model = version_converter.convert_version(case.model, RAISED_TO)
        _declare_weights(model)
        newer = run_case(case.name, model, [feeds for feeds, _ in case.runs])
    except (RLFlowError, RuntimeError):
        return None
    tolerance = tolerance_of(case.model)
    alike = all(all_close(old, new, tolerance) for (_, old), (_, new) in zip(case.runs, newer.runs, strict=True))
    return newer if alike else None


def embedded(case: Case) -> Case | None:
    """The model with each input and output of numbers behind a shift and a scale, both of which change nothing, in
    float32 whatever it is inside; if ONNX Runtime does not run it so, each float32 input and output. None where there
    is none, or it must be a weight.
    """
    for kinds in (_NUMBERS, {TensorProto.FLOAT}):
        try:
            outer = _surrounded(case, kinds)
        except RLFlowError:
            continue
        if outer is not None:
            return outer
    return None


def _surrounded(case: Case, kinds: Set[int]) -> Case | None:
    outer = onnx.ModelProto()
    outer.CopyFrom(case.model)
    graph = outer.graph
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [v for v in graph.input if v.type.tensor_type.elem_type in kinds and v.name not in stored]
    outputs = [v for v in graph.output if v.type.tensor_type.elem_type in kinds]
    if not inputs and not outputs:
        return None
    moved = {value.name for value in inputs}
    before = [node for value in inputs for node in _into(value)]
    after = [node for value in outputs for node in _out_of(value)]
    nodes = [*before, *graph.node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    for number, name in enumerate(("zero", "one")):
        graph.initializer.append(numpy_helper.from_array(np.float32(number), name + _SUFFIX))
    _declare_weights(outer)
    if not any(opset.domain == "" for opset in outer.opset_import):
        outer.opset_import.append(helper.make_opsetid("", _FIRST_OPSET_THAT_BROADCASTS))
    return run_case(case.name, outer, [_fed_outside(feeds, moved) for feeds, _ in case.runs])


def _declare_weights(model: onnx.ModelProto) -> None:
    """Old models list every weight among the inputs."""
    if model.ir_version < _WEIGHTS_ARE_NO_INPUTS:
        listed = {value.name for value in model.graph.input}
        for tensor in model.graph.initializer:
            if tensor.name not in listed:
                model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))


def _fed_outside(feeds: Values, moved: Set[str]) -> Values:
    return {
        name + _SUFFIX if name in moved else name: np.asarray(value).astype(np.float32) if name in moved else value
        for name, value in feeds.items()
    }


def _into(value: onnx.ValueInfoProto) -> list[onnx.NodeProto]:
    """What computes an input; the caller feeds it as float32 under another name from here on."""
    name, element = value.name, value.type.tensor_type.elem_type
    value.name += _SUFFIX
    value.type.tensor_type.elem_type = TensorProto.FLOAT
    if element == TensorProto.FLOAT:
        return _shifted_and_scaled(value.name, name)
    number = f"{name}{_SUFFIX}_number"
    return [*_shifted_and_scaled(value.name, number), helper.make_node("Cast", [number], [name], to=element)]


def _out_of(value: onnx.ValueInfoProto) -> list[onnx.NodeProto]:
    """What reads an output, and makes of it a float32 one under another name."""
    name, element = value.name, value.type.tensor_type.elem_type
    value.name += _SUFFIX
    value.type.tensor_type.elem_type = TensorProto.FLOAT
    if element == TensorProto.FLOAT:
        return _shifted_and_scaled(name, value.name)
    number = f"{name}{_SUFFIX}_number"
    cast = helper.make_node("Cast", [name], [number], to=TensorProto.FLOAT)
    return [cast, *_shifted_and_scaled(number, value.name)]


def _shifted_and_scaled(read: str, written: str) -> list[onnx.NodeProto]:
    between = f"{written}{_SUFFIX}_shifted"
    return [
        helper.make_node("Add", [read, "zero" + _SUFFIX], [between]),
        helper.make_node("Mul", ["one" + _SUFFIX, between], [written]),
    ]


def survival_of_tests(tests: Iterable[Any]) -> Survival:
    """Tests of onnx: as they are, and rewritten in a context in which rules match."""
    tally, walk = Survival(), Walk(least_rules=RULES_AROUND)
    for test in tests:
        tally.models += 1
        case = case_of(test)
        if case is None:
            continue
        tally.import_and_export(case)
        newer = case if _broadcasts(case.model) else raised(case)
        inside = newer and embedded(newer)
        if inside is not None:
            tally.rewrite(inside, walk)
        elif newer is None:
            tally.exceptions[case.name] = "its opset does not broadcast and cannot be raised"
        else:
            tally.exceptions[case.name] = "no tensor of numbers goes into it or comes out"
    return tally


def _broadcasts(model: onnx.ModelProto) -> bool:
    """Whether a number can be added to any tensor: before opset 7, only along an axis that is named."""
    return all(o.version >= _FIRST_OPSET_THAT_BROADCASTS for o in model.opset_import if o.domain == "")


LIGHT_MODELS = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))
"""AlexNet to VGG-19, with weights that are one number each, made as the model runs."""
WALKS_OF_LIGHT_MODELS = (5, 20)


def survival_of_light_models(paths: Sequence[Path] = LIGHT_MODELS) -> Survival:
    """Whole as they are, and rewritten in a context up to their Softmax."""
    tally, walk = Survival(), Walk(least_rules=RULES_AROUND)
    for path in paths:
        tally.models += 1
        tally.import_and_export(_drawn_case(path.stem, onnx.load(path)))
        inside = embedded(_drawn_case(path.stem, _up_to_softmax(onnx.load(path))))
        assert inside is not None
        tally.rewrite(inside, walk, WALKS_OF_LIGHT_MODELS)
    return tally


def survival_of_light_models_with_drawn_weights(paths: Sequence[Path] = LIGHT_MODELS) -> Survival:
    """In a newer opset, without a context, and with weights that tell one channel from another."""
    tally, walk = Survival(), Walk(least_rules=1)
    for path in paths:
        tally.models += 1
        model = version_converter.convert_version(_up_to_softmax(onnx.load(path)), RAISED_TO)
        case = _drawn_case(path.stem, _with_drawn_weights(model))
        tally.import_and_export(case)
        tally.rewrite(case, walk, WALKS_OF_LIGHT_MODELS)
    return tally


def _drawn_case(name: str, model: onnx.ModelProto) -> Case:
    return run_case(name, model, [draw_inputs(model, np.random.default_rng(0))])


def _up_to_softmax(model: onnx.ModelProto) -> onnx.ModelProto:
    """The weights being what they are, numbers before it reach 7e9, and it makes a certainty of a rounding error: in
    SqueezeNet each of a thousand classes has 0.001, and 0.00133 or 0 where the mean before it adds in another order.
    """
    last = model.graph.node[-1]
    if last.op_type == "Softmax":
        model.graph.output[0].name = last.input[0]
        del model.graph.node[-1]
    return model


def _with_drawn_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    graph, rng = model.graph, np.random.default_rng(0)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    made = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    weights = [numpy_helper.from_array(_drawn(rng, shapes[node.input[0]]), node.output[0]) for node in made]
    for node in made:
        graph.node.remove(node)
    read = {name for node in graph.node for name in node.input}
    for unread in [value for value in graph.input if value.name not in read]:
        graph.input.remove(unread)
    for unread in [tensor for tensor in graph.initializer if tensor.name not in read]:
        graph.initializer.remove(unread)
    graph.initializer.extend(weights)
    model.ir_version = max(model.ir_version, _WEIGHTS_ARE_NO_INPUTS)
    return model


def _drawn(rng: np.random.Generator, shape: np.ndarray) -> np.ndarray:
    """Filters and matrices that keep the size of what they are applied to; what is one number a channel is about 1."""
    values = rng.standard_normal(shape, dtype=np.float32)
    if len(shape) == 1:
        return np.float32(1) + np.abs(values) * np.float32(0.1)
    return values * np.sqrt(np.float32(2) / np.prod(shape[1:], dtype=np.float32))
