"""Every entry: valid ONNX, described, reproducible, and clear about what it refuses."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.golden import models
from support.golden.file import read
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.errors import InputError
from rlflow.zoo.registry import BUILDERS

EXPECTED = zoo.names()
ENTRIES = [(name, SMALL.get(name, {})) for name in EXPECTED]


def test_names_are_those_of_the_modules_and_sorted():
    """No builder is forgotten: each module that is no helper has one in the table."""
    assert zoo.names() == sorted(set(zoo.names()))
    modules = {path.stem for path in Path(zoo.__file__).parent.glob("*.py")}
    helpers = {"__init__", "builder", "convolution", "named", "registry", "tokens", "transformer"}
    assert modules - helpers == {target.split(":")[0].rpartition(".")[2] for target in BUILDERS.built_in.values()}
    assert zoo.names_with_optimum() == [name for name in EXPECTED if name.startswith("tiny")]


@pytest.mark.parametrize("opset", [17, 19, 21])
@pytest.mark.parametrize(("name", "settings"), ENTRIES)
def test_models_are_valid_onnx(name, settings, opset):
    model = zoo.build(name, **settings, opset=opset)
    assert model.ir_version == 10
    assert [(o.domain, o.version) for o in model.opset_import] == [("", opset)]
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    names = [node.name for node in model.graph.node]
    assert all(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_shapes_of_all_values_are_known(name):
    """Those of an open batch as well, where there is one."""
    settings = {"batch": "batch"} if "batch" in zoo.describe(name).settings and not name.startswith("tiny") else {}
    model = zoo.build(name, **SMALL[name], **settings)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    computed = {name for node in model.graph.node for name in node.output} - {
        value.name for value in model.graph.output
    }
    shapes = {value.name: value.type.tensor_type.shape.dim for value in inferred.graph.value_info}
    assert shapes.keys() >= computed
    assert all(d.dim_param or d.dim_value for shape in shapes.values() for d in shape)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_node_is_that_of_the_golden_set(name):
    """Wiring and attributes do not show in sizes: the set was recorded when torch agreed."""
    assert models.entries()[name]() == read()["models"][name]


@pytest.mark.parametrize(("name", "settings"), ENTRIES)
def test_every_initialiser_and_node_is_used(name, settings):
    """Nothing dead: an optimiser that removes dead code must not look good here."""
    model = zoo.build(name, **settings)
    graphs = [model.graph, *(a.g for node in model.graph.node for a in node.attribute if a.HasField("g"))]
    used = {tensor for graph in graphs for node in graph.node for tensor in node.input}
    used |= {value.name for graph in graphs for value in graph.output}
    assert {tensor.name for tensor in model.graph.initializer} <= used
    assert {value.name for value in model.graph.input} <= used
    assert all(used.intersection(node.output) for node in model.graph.node)


@pytest.mark.parametrize(
    ("build", "name", "settings"),
    [
        *((zoo.build, name, settings) for name, settings in ENTRIES),
        *((zoo.optimum, name, {}) for name in zoo.names_with_optimum()),
    ],
)
def test_same_seed_same_bytes_other_seed_other_bytes(build, name, settings):
    first, again, other = (build(name, **settings, seed=seed).SerializeToString() for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize(("name", "settings"), ENTRIES)
def test_another_seed_changes_every_parameter_and_nothing_else(name, settings, parameters):
    first, other = zoo.build(name, **settings, seed=1), zoo.build(name, **settings, seed=2)
    assert list(first.graph.node) == list(other.graph.node)
    ours, theirs = parameters(first), parameters(other)
    assert ours.keys() == theirs.keys()
    assert all(not np.any(ours[key] == theirs[key]) for key in ours if ours[key].size < 100)
    assert all(not np.array_equal(ours[key], theirs[key]) for key in ours)


@pytest.mark.parametrize(("name", "settings"), ENTRIES)
def test_no_parameter_is_degenerate(name, settings, parameters):
    for key, values in parameters(zoo.build(name, **settings)).items():
        assert values.dtype == np.float32
        assert np.count_nonzero(values) == values.size, key
        assert values.size == 1 or values.std() > 0, key
        assert not key.endswith("variance") or values.min() >= 0.5
        assert not key.endswith("gain") or values.min() > 0


@pytest.mark.parametrize(("name", "settings"), ENTRIES)
def test_no_two_parameters_share_their_draws(name, settings, parameters):
    """Query and key of one matrix, or two branches of one weight, would be merged by a rewriter for a wrong reason."""
    values = list(parameters(zoo.build(name, **settings)).values())
    for length in {array.size for array in values if array.size >= 8}:
        heads = [array.flat[:length] for array in values if array.size >= length]
        shortest = np.array([array.size == length for array in values if array.size >= length])
        correlated = np.abs(np.atleast_2d(np.corrcoef(heads))) > 0.999
        assert not np.triu(correlated, 1)[shortest[:, None] | shortest].any()


@pytest.mark.parametrize("name", EXPECTED)
def test_description_states_the_defaults(name):
    entry = zoo.describe(name)
    assert entry.name == name
    assert entry.family
    assert entry.summary.endswith(".")
    assert entry.settings["seed"] == 0
    assert entry.settings["opset"] == 17
    if name in zoo.names_with_optimum():
        defaults = zoo.build(name, **entry.settings)
        assert defaults.SerializeToString() == zoo.build(name).SerializeToString()
        assert zoo.optimum(name, **entry.settings).SerializeToString() == zoo.optimum(name).SerializeToString()


@pytest.mark.parametrize("use", [zoo.build, zoo.describe, zoo.optimum])
def test_unknown_names_are_refused_with_the_known_ones(use):
    with pytest.raises(
        InputError, match=r"there is no model of the zoo 'brt': did you mean bert\? choose one of bert, conv, .*, vit"
    ):
        use("brt")


@pytest.mark.parametrize("use", [zoo.build, zoo.optimum])
def test_unknown_settings_are_refused_with_the_known_ones(use):
    with pytest.raises(InputError, match="tiny_scale has no setting 'layers': choose from opset, rows, seed, width"):
        use("tiny_scale", layers=3)


@pytest.mark.parametrize(
    ("setting", "value", "advice"),
    [
        ("layers", 0, "a whole number from 1"),
        ("layers", 2.0, "a whole number from 1"),
        ("layers", "two", "a whole number from 1"),
        ("layers", True, "a whole number from 1"),
        ("seed", -1, "a whole number from 0"),
        ("batch", "", "a whole number from 1, or the name of a dynamic dimension"),
        ("batch", None, "a whole number from 1, or the name of a dynamic dimension"),
        ("head", "mlm", "'none' or 'cls'"),
        ("layer_norm", 1, "'fused' or 'decomposed'"),
        ("attention_mask", 1, "True or False"),
    ],
)
def test_impossible_values_are_refused_with_what_is_possible(setting, value, advice):
    with pytest.raises(InputError) as refusal:
        zoo.build("bert", **{**SMALL["bert"], setting: value})
    assert f"bert cannot have {setting}={value!r}: give {advice}" in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("bert", {"hidden": 30, "heads": 4}, "hidden=30 is not a multiple of heads=4"),
        ("bert", {"sequence": 17, "positions": 16}, "sequence=17 exceeds positions=16"),
        ("bert", {"opset": 16}, "LayerNormalization does not exist at opset 16"),
        ("bert", {"opset": 14, "layer_norm": "decomposed"}, "opset is 14; choose one from 15 to 21"),
        ("conv", {"image": 8, "blocks": 4}, "4 blocks halve an image of 8 pixels to nothing"),
        ("dalle", {"hidden": 30, "heads": 4}, "hidden=30 is not a multiple of heads=4"),
        ("gpt2", {"hidden": 30, "heads": 4}, "hidden=30 is not a multiple of heads=4"),
        ("gpt2", {"sequence": 17, "positions": 16}, "sequence=17 exceeds positions=16"),
        ("gpt2", {"opset": 16}, "LayerNormalization does not exist at opset 16"),
        ("inception_v3", {"image": 74}, "the layers leave nothing of an image of 74 pixels; give 75 or more"),
        ("nasnet_a", {"width": 6}, "width=6 is not a multiple of 4"),
        ("nasnet_a", {"image": 34}, "the layers leave nothing of an image of 34 pixels; give 35 or more"),
        ("resnext50", {"width": 4, "groups": 32}, "8 channels, twice width=4, cannot be divided among groups=32"),
        ("squeezenet1_1", {"image": 20}, "the poolings leave nothing of an image of 20 pixels; give 21 or more"),
        ("t5_decoder", {"hidden": 30, "heads": 4}, "hidden=30 is not a multiple of heads=4"),
        ("t5_decoder", {"buckets": 31}, "buckets=31 is odd"),
        ("transformer_transducer", {"hidden": 30, "heads": 4}, "hidden=30 is not a multiple of heads=4"),
        ("transformer_transducer", {"hidden": 33, "heads": 3}, "hidden=33 is odd"),
        ("vgg19", {"image": 31}, "the poolings leave nothing of an image of 31 pixels; give 32 or more"),
        ("vit", {"image": 25, "patch": 8}, "image=25 is not a multiple of patch=8"),
        ("vit", {"hidden": 30, "heads": 4}, "hidden=30 is not a multiple of heads=4"),
        ("vit", {"opset": 16}, "LayerNormalization does not exist at opset 16"),
        ("yolo_v5", {"image": 100}, "image=100 is not a multiple of 32"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(name, settings, reason):
    with pytest.raises(InputError, match=f"{name}: .*{reason}" if name != "conv" else reason):
        zoo.build(name, **{**SMALL[name], **settings})
