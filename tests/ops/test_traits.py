"""Each operator says all that is asked of it where it is defined: no other module tells operators apart by name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import rlflow
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.blocking import BLOCKING
from rlflow.ops.carried import CARRIED
from rlflow.ops.domain import FloatDomain
from rlflow.ops.registry import OPERATORS, TRAITS, TRAITS_BY_TYPE, having, types_having
from rlflow.ops.traits import Fusion, SizeArithmetic, Traits

SOURCE = Path(rlflow.__file__).parent
NAMES = {*TRAITS, *TRAITS_BY_TYPE, *(schema.name for schema in onnx.defs.get_all_schemas())}
RUNNING = frozenset(name for name, operator in OPERATORS.items() if operator.arity[1])

BUILDING = {
    "agents/match_level/layers_network.py": "a network is written in operators",
    "agents/match_level/onnx_encoder.py": "a network is written in operators",
    "agents/match_level/onnx_pointer.py": "a network is written in operators",
    "onnx_io/network.py": "networks are written in operators",
    "ops": "operators are defined here",
    "zoo": "models are built of operators",
    "passes/onnx/detours.py": "models are built of operators, the long way round",
    "passes/onnx/light_models.py": "models are built of operators",
    "passes/onnx/operators.py": "the types that observations of pass ordering count",
    "rules/declared": "rules are written of operators",
    "synthesis/taso": "TASO's operators are translated into these",
    "synthesis/families.py": "families list the operators to enumerate",
    "synthesis/two_outputs.py": "what is found for a joint of two parts is said by a Concat and a Split",
}
"""Modules that make expressions of operators, and so must name them."""

NAMED = {
    "equivalence/mutation.py": (
        {"Constant", "Identity", "Not", "Neg", "Cast"},
        "nodes that hold numbers, and those of which faults are made",
    ),
    "equivalence/float64.py": (
        {"Constant", "ConstantOfShape"},
        "nodes that hold numbers, which are stored in float64 there",
    ),
    "integrations/fragment.py": (
        {"ConstantOfShape", "Identity"},
        "nodes that stand for a large weight, and for a value that takes another's name",
    ),
    "integrations/onnxscript.py": ({"Identity"}, "by which onnxscript says that a value stands for another"),
    "onnx_io/dequantised.py": (
        {"QuantizeLinear", "DequantizeLinear"},
        "the pair that says which numbers of 8 bits stand for floats",
    ),
    "onnx_io/exporter.py": ({"Identity", "ConstantOfShape"}, "nodes that it adds: aliases, and numbers repeated"),
    "onnx_io/importer.py": ({"Constant", "ConstantOfShape", "Shape"}, "nodes that become weights on the way in"),
    "onnx_io/reads.py": ({"Slice", "Gather", "Squeeze", "Constant"}, "nodes that it adds: an index, as numpy reads it"),
    "onnx_io/shapes/inference.py": ({"Loop"}, "control flow, whose types are those of its body"),
    "onnx_io/subgraphs.py": (
        {"If", "Loop", "Scan", "SequenceMap", "Constant", "Identity"},
        "control flow, and the nodes by which a body reads what surrounds it",
    ),
    "onnx_io/tree_ensemble.py": ({"TreeEnsembleRegressor"}, "the node that holds the trees which it writes"),
    "passes/onnx/normal_form.py": ({"Constant"}, "a node that holds a number becomes an initializer"),
    "rules/dsl/__init__.py": ({"Shape"}, "a type of the language, not the operator"),
    "rules/dsl/operators.py": ({"Split"}, "the constructor of all parts at once"),
    "rules/dsl/tensors.py": ({"Constant"}, "a number in a rule is a Constant"),
    "rules/pattern.py": (
        {"Constant", "Split"},
        "the notation: a Constant is a number, a Split's first output is written",
    ),
    "runtime/blocks.py": ({"MaxPool"}, "a model is built to ask the runtime for the size of its blocks"),
    "runtime/input_domains.py": ({"Constant", "Loop"}, "nodes that hold numbers, and results of a body"),
    "runtime/opsets.py": ({"Identity"}, "a model is built to ask the runtime which opsets it has"),
    "runtime/timing/bandwidth.py": ({"Neg"}, "a model is built to time the machine itself"),
    "runtime/timing/pace.py": ({"MatMul"}, "a model is built to time the machine itself"),
    "runtime/timing/fragments.py": ({"Softmax"}, "its time depends on the numbers that it reads"),
    "runtime/timing/batches.py": ({"MatMul", "Flatten"}, "models are built to time the runtime itself"),
}
"""Modules that name operators, with the reason."""


def _names_in(path: Path) -> Iterator[str]:
    """Operators named by string literals, alone or in a list of words."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()
            if words and NAMES.issuperset(words):
                yield from words


def _is_building(path: str) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in BUILDING)


def test_no_module_tells_operators_apart_by_name() -> None:
    """Not vacuous: the exceptions are found, exactly, and a chain of names would be."""
    found = {path.relative_to(SOURCE).as_posix(): set(_names_in(path)) for path in sorted(SOURCE.rglob("*.py"))}
    named = {path: names for path, names in found.items() if names and not _is_building(path)}
    assert named == {path: names for path, (names, _) in NAMED.items()}


def test_a_chain_of_names_is_found(tmp_path: Path) -> None:
    module = tmp_path / "chain.py"
    module.write_text('if op == "Softmax" or op in "Conv Gemm".split():\n    pass\n')
    assert set(_names_in(module)) == {"Softmax", "Conv", "Gemm"}


def test_an_operator_is_understood_or_carried() -> None:
    assert not OPERATORS.keys() & CARRIED.keys()
    assert {name: operator.traits for name, operator in OPERATORS.items()}.items() <= TRAITS.items()


def test_carried_operators_exist_and_have_traits() -> None:
    """A misspelt name would have its traits for nothing."""
    schemas = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
    assert {name for name in CARRIED if "." not in name} <= schemas
    assert all(traits != Traits() for traits in CARRIED.values())


def test_operators_that_know_blocked_images_exist() -> None:
    """A misspelt name would be taken for an operator of plain images."""
    assert {name for name in BLOCKING if "." not in name} <= {schema.name for schema in onnx.defs.get_all_schemas()}
    assert {name for name in BLOCKING if "." in name} <= OPERATORS.keys()


def test_of_two_operators_of_one_type_that_of_onnx_answers() -> None:
    assert TRAITS_BY_TYPE["Gelu"] is OPERATORS["Gelu"].traits is not OPERATORS["com.microsoft.Gelu"].traits
    assert TRAITS_BY_TYPE["FusedConv"] is OPERATORS["com.microsoft.FusedConv"].traits


def test_readers_without_domains_hear_of_every_operator() -> None:
    assert types_having(lambda traits: traits.typed_like_operand) >= {"FastGelu", "QuickGelu"}
    assert "FastGelu" not in having(lambda traits: traits.typed_like_operand)


@pytest.mark.parametrize("name", sorted(having(lambda traits: traits.view)))
def test_a_view_has_its_operands_elements_in_their_order(name: str) -> None:
    """Evaluated: views that would move an element are no views."""
    attributes = {"Reshape": {"shape": (3, 2)}, "Unsqueeze": {"axes": (0,)}, "Squeeze": {"axes": (-3,)}}
    operator, x = OPERATORS[name], np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    (result,) = _evaluated(operator.name, {**operator.defaults, **attributes.get(name, {})}, x)
    assert result.reshape(-1).tolist() == x.reshape(-1).tolist()


@pytest.mark.parametrize("name", sorted(RUNNING & having(lambda traits: traits.elementwise)))
def test_an_elementwise_operator_sees_one_element_at_a_time(name: str) -> None:
    assert _sees_one_element_at_a_time(name)


@pytest.mark.parametrize("name", ["Softmax", "MatMul"])
def test_other_operators_see_several_elements(name: str) -> None:
    """The control: the test before would notice."""
    assert not _sees_one_element_at_a_time(name)


def _sees_one_element_at_a_time(name: str) -> bool:
    """Whether each element alone gives what it gives among the others."""
    operator, x = OPERATORS[name], np.linspace(0.25, 2.0, 9, dtype=np.float32).reshape(3, 3)
    given = {"exponent": 3.0, "scale": 0.25, "to": "int8"}
    attributes = {**operator.defaults, **{name: given[name] for name in operator.required if name in given}}
    x = np.rint(10 * x).astype(np.int8) if operator.traits.dequantises else x
    count = operator.arity[0]
    (whole,) = _evaluated(name, attributes, *[x] * count)
    alone = [_evaluated(name, attributes, *[x[place].reshape(1, 1)] * count)[0].item() for place in np.ndindex(3, 3)]
    return np.allclose(alone, whole.reshape(-1), rtol=1e-6)


@pytest.mark.parametrize("name", sorted(RUNNING & having(lambda t: t.size_arithmetic & SizeArithmetic.DYNAMIC)))
def test_what_works_on_sizes_works_on_whole_numbers(name: str) -> None:
    assert SizeArithmetic.WHOLE in OPERATORS[name].traits.size_arithmetic


def test_what_is_fused_is_known_of_operators_of_onnx_alone() -> None:
    """ONNX Runtime's own operators come of its fusions, and are fused no more."""
    assert all("." not in name for name in having(lambda traits: traits.fusion != Fusion.NONE))


@pytest.mark.parametrize("name", sorted(name for name in RUNNING if not OPERATORS[name].domain))
def test_attributes_that_the_forms_name_are_attributes_of_onnx(name: str) -> None:
    """In some opset, for a misspelt one would never be read. Parameters may always have been operands."""
    form = OPERATORS[name].onnx
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if (s.domain, s.name) == ("", name)]
    attributes = {attribute for schema in schemas for attribute in schema.attributes}
    operands = {operand.name for schema in schemas for operand in schema.inputs}
    told = {form.axes, form.axes_of_result, form.element_type, *form.ignored, *form.harmless, *form.attributes_since}
    assert told - {""} <= attributes | {p.name for p in form.parameters}
    assert len(operands) >= max((p.operand + 1 for p in form.parameters), default=0)


def _evaluated(name: str, attributes: dict[str, object], *operands: np.ndarray) -> list[np.ndarray]:
    types = [TensorType(x.dtype.name, x.shape) for x in operands]
    operator = OPERATORS[name]
    assert len(operator.infer(attributes, types)) == 1  # type: ignore[arg-type]
    return list(operator.evaluate(FloatDomain(), attributes, operands))  # type: ignore[arg-type]
