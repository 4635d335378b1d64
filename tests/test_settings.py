"""A section of conf/ becomes a configuration, or is refused."""

from dataclasses import dataclass

import pytest

from rlflow.errors import InputError
from rlflow.settings import read_config


@dataclass(frozen=True)
class Oven:
    """Settings with defaults."""

    temperature: float = 1.0
    minutes: int = 20


def test_a_section_sets_what_it_names_and_leaves_the_rest() -> None:
    assert read_config(Oven, {"temperature": 0.5}) == Oven(0.5, 20)


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"Oven: unknown setting tau; the settings are temperature, minutes"):
        read_config(Oven, {"tau": 0.5})


@dataclass(frozen=True)
class Kitchen:
    """Settings with settings in them, and a tuple."""

    oven: Oven
    names: tuple[str, ...] = ()


def test_lists_and_sections_become_what_the_dataclass_has() -> None:
    section = {"oven": {"minutes": 5}, "names": ["cook", "baker"]}
    assert read_config(Kitchen, section) == Kitchen(Oven(minutes=5), ("cook", "baker"))
    assert read_config(Kitchen, {"oven": Oven(2.0)}) == Kitchen(Oven(2.0)), "what was read already stays"
    with pytest.raises(InputError, match=r"Kitchen\.oven: unknown setting tau"):
        read_config(Kitchen, {"oven": {"tau": 1}})


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"oven": {"temperature": "hot"}}, "kitchen.oven.temperature: Expected `float`, got `str`, and it is 'hot'"),
        ({"oven": {"minutes": 1.5}}, "kitchen.oven.minutes: Expected `int`, got `float`, and it is 1.5"),
        ({"oven": {}, "names": "cook"}, "kitchen.names: Expected `array`, got `str`, and it is 'cook'"),
        ({"oven": None}, "kitchen.oven: Expected `object`, got `null`, and it is None"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(section: dict[str, object], told: str) -> None:
    with pytest.raises(InputError) as refused:
        read_config(Kitchen, section, "kitchen")
    assert str(refused.value) == told


def test_a_whole_number_will_do_where_a_float_is_meant() -> None:
    assert read_config(Oven, {"temperature": 2}) == Oven(2.0)
