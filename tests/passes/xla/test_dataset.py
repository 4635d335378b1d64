"""The dataset: names, settings and families."""

from collections import Counter

import pytest

from rlflow.errors import InputError
from rlflow.passes.xla import dataset
from rlflow.passes.xla.backend import XlaBackend


def test_there_are_many_programs_of_many_families() -> None:
    sources = dataset.sources()
    assert len({source.name for source in sources}) == len(sources) >= 160
    families = Counter(source.family for source in sources)
    assert len(families) >= 20
    assert all(families[family] >= 12 for family in ("gpt2", "bert", "resnet"))
    assert all("/" not in family for family in families), "forward and step of a model are one family"


def test_names_without_settings_are_those_of_the_sources() -> None:
    assert {source.name.partition("?")[0] for source in dataset.sources()} == set(dataset.names())


def test_settings_change_the_program_and_defaults_may_be_left_out() -> None:
    assert dataset.stablehlo("mlp/forward") == dataset.stablehlo("mlp/forward?width=32&layers=2&dropout=false")
    assert b"tensor<5x7xf32>" in dataset.stablehlo("mlp/forward?batch=5&width=7")
    assert dataset.stablehlo("mlp/forward?dropout=true") != dataset.stablehlo("mlp/forward")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpt3/forward", "no program 'gpt3/forward', and no such file: choose from gpt2/forward, gpt2/step"),
        ("gpt2", "no program 'gpt2'"),
        ("sampler/step", "no program 'sampler/step'"),
        ("mlp/step?depth=2", "mlp/step has no setting 'depth': choose from layers, width, batch, dropout"),
        ("mlp/step?layers=0", "mlp/step cannot have layers=0: give a whole number from 1"),
        ("mlp/step?layers=two", "cannot have layers=two"),
        ("mlp/step?layers=", "cannot have layers=:"),
        ("mlp/step?dropout=1", "cannot have dropout=1: give true or false"),
        ("sampler?generator=dice", "cannot have generator=dice: give threefry2x32 or rbg"),
        ("quantised?width=5", "quantised?width=5 does not fit together: cannot reshape"),
        ("autoencoder/step?image=15", "autoencoder/step?image=15 does not fit together: "),
        ("gpt2/step?width=10&heads=4", "width=10 cannot be shared by heads=4"),
    ],
)
def test_what_does_not_exist_is_refused_with_the_choices(name: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        dataset.stablehlo(name)
    assert message in str(refused.value)


@pytest.mark.study
def test_every_listed_program_is_lowered() -> None:
    for source in dataset.sources():
        assert b"@main" in dataset.stablehlo(source.name)


@pytest.mark.study
def test_every_listed_program_loads_and_is_small(xla: XlaBackend) -> None:
    sizes = [xla.load(source.name).facts.operations for source in dataset.sources()]
    assert max(sizes) <= 1200
    assert sorted(sizes)[len(sizes) * 3 // 4] <= 600
