import copy
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rlflow import schemas
from rlflow.errors import InputError, RLFlowError

# `optimise` is tested on a real report in test_report.py, `rules_show` on every shipped rule in tests/cli.
NAMES = [name for name in schemas.names() if name not in ("optimise", "rules_show")]


POLICY_READING = ("reading", "taken_auc", "saving_rank_correlation")


NEW_AND_OLD_TOKENS = {
    f"{name}{of}" for name in ("saving_r2", "saving_correlation_within_rules") for of in ("", "_new_tokens")
}


def test_every_schema_has_a_document_here(documents):
    assert set(NAMES) == set(documents)
    assert len(NAMES) >= 22


@pytest.mark.parametrize("path", sorted(files("rlflow.schemas").iterdir(), key=str), ids=lambda path: path.name)
def test_every_schema_file_is_a_schema(path):
    if path.name.endswith(".json"):
        content = json.loads(path.read_text())
        Draft202012Validator.check_schema(content)
        assert content["$id"] == f"urn:rlflow:schema:{path.name.removesuffix('.schema.json')}"


@pytest.mark.parametrize("name", NAMES)
def test_a_sound_document_is_accepted(documents, name):
    """What is not sound raises, as the tests below show; what is raises nothing."""
    schemas.validate(name, documents[name])


def places(value: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """Every value inside `value` with its path, outermost first."""
    yield path, value
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in children:
        yield from places(item, (*path, key))


def at(document: Any, path: tuple) -> Any:
    for key in path:
        document = document[key]
    return document


@pytest.mark.parametrize("name", NAMES)
def test_no_number_can_turn_into_text_or_nan_unnoticed(documents, name):
    """Whatever number of the document is replaced, the schema objects and names the place."""
    numbers = [path for path, value in places(documents[name]) if type(value) in (int, float)]
    assert numbers
    for path in numbers:
        for wrong in ("12", float("nan")):
            if wrong == "12" and "settings" in path:
                continue
            spoiled = copy.deepcopy(documents[name])
            at(spoiled, path[:-1])[path[-1]] = wrong
            with pytest.raises(RLFlowError, match="at /" + "/".join(map(str, path))):
                schemas.validate(name, spoiled)


def droppable(name: str, document: Any) -> set[str]:
    """Keys that the schema lets go, anywhere in `document`."""
    found = set()
    for path, key in ((path, key) for path, value in places(document) if isinstance(value, dict) for key in value):
        spoiled = copy.deepcopy(document)
        del at(spoiled, path)[key]
        try:
            schemas.validate(name, spoiled)
        except RLFlowError:
            continue
        found.add(key)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_only_these_keys_are_optional(documents, name):
    graphs, methods = {"bert", "tiny"}, {"random", "greedy", "backtracking", "rlflow"}
    effort = {"prices_asked", "prices_measured", "rewriting_s", "pricing_s", "measuring_s"}
    optional = {
        "collect_rollouts": graphs,
        "equivalence": {"float64", "mutants", "as_written"},
        "evaluate": graphs | methods | effort | {"steps", "distinct_rules", "trajectory", "far_share"},
        "fit_world_model": graphs | {"saving_rank_correlation", *NEW_AND_OLD_TOKENS},
        "generate_rules": {"bert"},
        "headroom": {"analytic", "gpu", "greedy", "equality_saturation", "10", "100"},
        "paper": {"improvement_percent", "optimisation_s", "return_percent", "fuse two products"},
        "pass_ordering": {"default", "fixpoint", "ppo", "run_time_ratio", "families"},
        "pass_ordering_graphs": {"gpt2/step", "default", "fixpoint", "start", "ppo", "training_hits"}
        | {"0", "1", "training_misses"},
        "policy": {"bert_one", "vit_held_out", "share", "trained", "held_out", *POLICY_READING},
        "sample_efficiency": {"t5_last_token_two_layers", "gpt2_last_token_two_layers"},
        "learned": {"rlflow", "improvement_percent_500", "improvement_percent_500_ci95", "gap_closed_500"},
        "learned_summary": {"bert", "rlflow"},
        "price_search": {"bert", "squeezenet1_1"},
        "reward_study": {"estimated", "every_step"},
        "repro_study": {"generate_rules", "evaluate", "data/rules", "data/policies", "data/models"},
        "price_model": graphs | {"regions", "graphs", "rewrites", "0", "0.5", "1", "2"},
        "rule_study": {"foreign.txt"},
        "conformance": {"optimise", "rules list"},
        "rules_applied": graphs | {"untouched", "rlflow", "greedy", "merge", "sum", "never", "cancel"},
        "budgets": {"15", "600", "share_percent"},
        "rules_generate": {"algebra"},
        "rules_recall": {"condition", "counter_example"},
        "rules_verify": {"finite", "moderate"},
        "fuzz": {"merge-3", "FuseReluClip"},
        "speedups": {"bert", "mobilenet_v2", "ort_disable_all", "onnxslim"},
        "temperature_sweep": {"dream_score_percent_ci95", "real_score_percent_ci95"},
        "timing": {"quiet_0.02", "bursts_0.02"},
        "zoo_list": {"layers"},
    }
    assert droppable(name, documents[name]) == optional.get(name, set())


def test_the_keys_of_the_issue_are_required(evaluation):
    keys = (
        "cost_before_ms cost_after_ms improvement_percent latency_ratio_as_written latency_ratio_as_written_ci95 "
        "latency_ratio_deployed latency_ratio_deployed_ci95 peak_memory_ratio flops_ratio launches_ratio "
        "max_relative_error optimisation_s training_s real_interactions seeds"
    ).split()
    for key in keys:
        spoiled = copy.deepcopy(evaluation)
        del spoiled["bert"]["greedy"][key]
        with pytest.raises(RLFlowError, match=f"at /bert/greedy: '{key}' is a required property"):
            schemas.validate("evaluate", spoiled)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("bert", "greedy", "latency_ratio_deployed_ci95"), [1.0], "too short"),
        (
            ("bert", "greedy", "latency_ratio_deployed_ci95"),
            [1.0, 2.0, 3.0],
            "but found 1|at most 2|expected",
        ),
        (("bert", "greedy", "latency_ratio_deployed"), 0, "less than or equal to the minimum"),
        (("bert", "greedy", "seeds"), [], "should be non-empty"),
        (("bert", "greedy", "seeds"), [0.5], "is not of type 'integer'"),
        (("bert", "greedy", "real_interactions"), -1, "less than the minimum"),
        (("bert", "greedy", "speed"), 1, "Additional properties are not allowed"),
        (("bert", "best"), {}, "'cost_after_ms' is a required property"),
        (("bert",), {}, "'original' is a required property"),
    ],
)
def test_evaluate_refuses(evaluation, path, value, message):
    at(evaluation, path[:-1])[path[-1]] = value
    with pytest.raises(RLFlowError, match=message):
        schemas.validate("evaluate", evaluation)


def test_a_figure_without_its_baseline_or_without_cases_is_refused(documents):
    document = documents["train_controller"]
    del document["bert"]["real_score_percent"]["baseline"]
    document["bert"]["dream_score_percent"]["cases"] = 0
    with pytest.raises(RLFlowError) as caught:
        schemas.validate("train_controller", document)
    assert "at /bert/real_score_percent: 'baseline' is a required property" in str(caught.value)
    assert "at /bert/dream_score_percent/cases: 0 is less than the minimum of 1" in str(caught.value)


def test_unknown_schemas_are_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"no schema 'common'; there are bench, budgets"):
        schemas.schema("common")
    with pytest.raises(InputError, match="no schema 'evalute'"):
        schemas.validate("evalute", {})


def test_schemas_are_handed_out_as_copies():
    schemas.schema("bench").clear()
    assert schemas.schema("bench")["title"]
