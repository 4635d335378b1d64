"""What the configuration of a study names is there: graphs, searches and costs of conf/, and five seeds."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import pytest
from studies.learned.cells import BASELINES
from studies.paper.parts import PARTS
from studies.speedups.public_tools import names as public_tools
from support.study_settings import option_names, plain_settings

from rlflow.optimise.methods import METHODS
from rlflow.settings import read_config
from rlflow.world_model.match_level.match_level_config import MatchLevelModelConfig

Named = dict[str, Iterable[str]]
NAMED: dict[str, Callable[[dict[str, Any]], Named]] = {
    "budgets": lambda s: {"graph": s["graphs"]},
    "portability": lambda s: {"graph": s["graphs"], "cost": [s["cost"]]},
    "agent": lambda s: {"graph": s["graphs"], "cost": s["costs"], "seeds": [str(s["seeds"])]},
    "cost_accuracy": lambda s: {"graph": s["graphs"]},
    "headroom": lambda s: {
        "graph": [*chain(*s["graphs"].values()), *s["latency"]["graphs"], *{*s["time_s"]} - {"default"}],
        "cost": [*s["graphs"], s["latency"]["cost"]],
        "search": [*s["methods"], *s["expansions"]],
    },
    "paper": lambda s: {
        "graph": chain(*(s[part].get("graphs", s[part].get("families")) for part in PARTS)),
        "seeds": [str(s[part]["seeds"]) for part in PARTS if part not in ("unseen", "frameworks")],
    },
    "reward_study": lambda s: {"graph": s["graphs"], "seeds": [str(s["seeds"])]},
    "sample_efficiency": lambda s: {"graph": s["graphs"], "seeds": [str(s["seeds"])]},
    "speedups": lambda s: {"graph": [model["graph"] for model in s["models"]], "tool": s["tools"]},
}


@pytest.mark.parametrize("study", NAMED)
def test_whatever_is_named_is_there(study: str) -> None:
    known = {group: option_names(group) for group in ("graph", "cost", "search")}
    known |= {"tool": {*public_tools()}, "seeds": {"[0, 1, 2, 3, 4]"}}
    for group, named in NAMED[study](plain_settings(study)).items():
        assert (names := {*named}), "or nothing is asked"
        assert names <= known[group]


@pytest.mark.parametrize("program", ["learned", "learned_planned", "learned_priced", "learned_shipped"])
def test_whatever_cases_name_is_there(program: str) -> None:
    config = plain_settings(program)
    assert {*config["graphs"], *config["headless"], *config["delivered"]["graphs"]} <= {*config["cases"]}
    for case in config["cases"].values():
        assert case["graph"] in option_names("graph")
        assert {case["cost"], case.get("taught_at", case["cost"])} <= option_names("cost")
    if config["policy"] is not None:
        assert read_config(MatchLevelModelConfig, config["policy"]).encoder_layers == config["policy"]["encoder_layers"]
    methods = {*config["once"], *config["drawn"]}
    assert {*methods, *config["options"], *config["long"]} <= {*BASELINES, *METHODS.names()}
    assert {*config["finders"]} <= methods
