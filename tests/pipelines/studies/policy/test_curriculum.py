"""A course has every lesson, and the practice every graph of the configuration, with what each does not say itself."""

from typing import Any

import pytest
from studies.policy.curriculum import practice_subjects, units

from rlflow.agents.match_level.demonstrations import GainConfig
from rlflow.agents.match_level.lessons import Expert, Start
from rlflow.errors import InputError

SETTINGS: dict[str, Any] = {
    "seed": 7,
    "gain": {"discount": 0.5, "horizon": 3},
    "play": {"episodes": 2, "steps": 4, "led": [0.5]},
    "lesson": {"start": {}, "expert": {"method": "chains", "expansions": 9}, "cost": "analytic", "held_out": False},
    "lessons": {
        "bert": {
            "plain": {"model": {"layers": 1}},
            "walked": {"model": {"layers": 2}, "start": {"walked": 3, "seed": 1}, "cost": "gpu", "held_out": True},
        },
        "vit": {"merged": {"model": {}, "start": {"merged_by": ["one", "other"]}}},
    },
    "practice": {
        "graph": {"costs": ["predicted", "gpu"]},
        "graphs": {
            "bert": {"deep": {"model": {"layers": 6}}, "wide": {"model": {"hidden": 64}, "costs": ["analytic"]}},
            "vit": {"deep": {"model": {}}},
        },
    },
}


def section(group: str, name: str) -> dict[str, Any]:
    return {"group": group, "kind": name}


def with_lesson(**own: Any) -> dict[str, Any]:
    return SETTINGS | {"lessons": {"bert": {"one": {"model": {}} | own}}}


def test_every_lesson_is_there_with_what_it_does_not_say_itself():
    plain, walked, merged = units(SETTINGS, section)
    assert [unit.lesson.name for unit in (plain, walked, merged)] == ["bert_plain", "bert_walked", "vit_merged"]
    assert [unit.family for unit in (plain, walked, merged)] == ["bert", "bert", "vit"]
    assert plain.subject.graph == {"kind": "zoo", "entry": "bert", "settings": {"layers": 1}}
    assert plain.subject.cost == {"group": "cost", "kind": "analytic"}
    assert plain.lesson.expert == merged.lesson.expert == Expert("chains", {}, 9)
    assert plain.lesson.gain == GainConfig(0.5, 3)
    assert (plain.lesson.play.episodes, plain.lesson.play.led, plain.lesson.seed) == (2, (0.5,), 7)
    assert not plain.held_out


def test_what_a_lesson_says_itself_holds():
    _, walked, merged = units(SETTINGS, section)
    assert walked.lesson.start == Start(walked=3, seed=1)
    assert walked.subject.cost["kind"] == "gpu"
    assert walked.held_out
    assert merged.lesson.start == Start(merged_by=("one", "other"))


@pytest.mark.parametrize(
    "own", [{"width": 3}, {"start": {"jumped": 3}}, {"expert": {"name": "chains"}}], ids=lambda own: next(iter(own))
)
def test_a_setting_that_there_is_not_is_refused(own: dict[str, Any]):
    unknown = next(iter(own.get("start", own.get("expert", own))))
    with pytest.raises(InputError, match=f"unknown setting {unknown}"):
        units(with_lesson(**own), section)


def test_a_graph_is_practised_on_once_at_each_of_its_costs():
    subjects = practice_subjects(SETTINGS, section)
    assert list(subjects) == [
        "bert_deep_predicted",
        "bert_deep_gpu",
        "bert_wide_analytic",
        "vit_deep_predicted",
        "vit_deep_gpu",
    ]
    assert subjects["bert_deep_gpu"].graph == {"kind": "zoo", "entry": "bert", "settings": {"layers": 6}}
    assert subjects["bert_deep_gpu"].cost == section("cost", "gpu")


def test_a_setting_that_a_graph_of_the_practice_does_not_have_is_refused():
    practice = SETTINGS["practice"] | {"graphs": {"bert": {"deep": {"model": {}, "cost": "gpu"}}}}
    with pytest.raises(InputError, match="unknown setting cost; the settings are model, costs"):
        practice_subjects(SETTINGS | {"practice": practice}, section)
