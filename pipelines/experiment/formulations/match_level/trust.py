"""Figures that tell how far the dream over match tokens can be trusted: V on savings, and dreams beside the truth."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from rlflow.representation.token_rollouts import TokenEpisode, TokenRollouts
from rlflow.schemas.figures import BaselineName, Figure
from rlflow.world_model.match_level.calibration import coverages, relative_errors, unseen
from rlflow.world_model.match_level.diagnostics import (
    TOP,
    Labels,
    agreement,
    by_rule,
    rule_means,
    saving_report,
    savings,
    shares_apart,
)
from rlflow.world_model.match_level.imagination import imagine
from rlflow.world_model.match_level.match_deltas import MatchDeltas, match_deltas
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.open_loop import open_loop
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from rlflow.world_model.match_level.token_encoder import TokenReading

ERRORS = {"reward": "reward_rule_mean", "return": "return_rule_mean"}
SHARES = {"alive": "alive_copy", "near": "near_copy"}


def figures(
    model: MatchLevelModel,
    rollouts: TokenRollouts,
    training: Sequence[TokenEpisode],
    held_out: Sequence[TokenEpisode],
    seed: int,
) -> dict[str, Any]:
    """Return how well V reads the savings of held-out episodes, and the errors of dreams that are led through them."""
    reading = model.read(rollouts)
    rule_mean = by_rule(rollouts.rule_of, rule_means(rollouts, training))
    report = saving_report(held_out, rollouts.rule_of, savings(reading), rule_mean, seed=seed)
    new = unseen(held_out, training)
    of_new_tokens = agreement(new, rollouts.rule_of, savings(reading), rule_mean)
    sets = match_deltas(training, model.arguments.config.largest_birth_set).sets
    return {
        **_saving_figures(report, of_new_tokens),
        "calibration": _calibration_rows(model, reading, new, seed),
        **_open_loop_figures(_led(model, reading, sets, training, held_out, rule_mean, seed)),
    }


def _led(
    model: MatchLevelModel,
    reading: TokenReading,
    sets: MatchDeltas,
    training: Sequence[TokenEpisode],
    held_out: Sequence[TokenEpisode],
    rule_mean: np.ndarray,
    seed: int,
) -> dict[int, dict[str, float]]:
    """The measures of dreams that are led through held-out episodes, by horizon; savings as V reads them."""
    dream = MatchLevelDreamConfig(pessimism=0.0, birth_pessimism=0.0)
    precomputed = PrecomputedModel.of(model.memory, reading, sets, dream.candidates)
    precomputed = precomputed.counted(*map(torch.from_numpy, shares_apart(training)))
    generator = torch.Generator().manual_seed(seed)
    dreamed = partial(imagine, precomputed, model.memory, config=dream, generator=generator)
    return open_loop(dreamed, held_out, rule_mean, dream.max_kinds)


def _saving_figures(report: Mapping[str, float], of_new_tokens: Mapping[str, float]) -> dict[str, Any]:
    """Figures of how well V reads savings, of all matches and of those with a token that no training episode shows.

    A figure that is not defined on these episodes is left out.
    """
    found = {
        **_agreement_figures(report, ""),
        **_agreement_figures(of_new_tokens, "_new_tokens"),
        "saving_rank_correlation": _figure(report, "spearman", "rule_mean", "spearman_cases"),
    }
    regrets = [
        {"kinds": kinds, "regret": figure}
        for kinds in TOP
        for baseline in ("rule_mean", "random")
        if (figure := _figure(report, f"regret_{kinds}", baseline, "regret_cases")) is not None
    ]
    return {name: figure for name, figure in found.items() if figure is not None} | {"regrets": regrets}


def _agreement_figures(report: Mapping[str, float], of: str) -> dict[str, dict[str, Any] | None]:
    centred = {**report, "within_rule_rule_mean": 0.0}
    return {
        f"saving_r2{of}": _figure(report, "r2", "rule_mean", "r2_cases"),
        f"saving_correlation_within_rules{of}": _figure(centred, "within_rule", "rule_mean", "within_rule_cases"),
    }


def _figure(report: Mapping[str, float], measure: str, baseline: BaselineName, cases: str) -> dict[str, Any] | None:
    value, beside = report[measure], report[f"{measure}_{baseline}"]
    if not (math.isfinite(value) and math.isfinite(beside) and report[cases] > 0):
        return None
    return Figure(value, beside, baseline, int(report[cases])).to_json()


def _calibration_rows(model: MatchLevelModel, reading: TokenReading, new: Labels, seed: int) -> list[dict[str, Any]]:
    """The shares of errors within what V's sigma says, on tokens that no training episode shows."""
    errors = relative_errors(reading, new) * float(model.encoder.sigma_factor)
    return [
        {
            "nominal_percent": nominal,
            "share": Figure(calibrated, uncalibrated, "uncalibrated", len(errors)).to_json(),
        }
        for nominal, (calibrated, uncalibrated) in coverages(errors, seed).items()
    ]


def _open_loop_figures(horizons: Mapping[int, Mapping[str, float]]) -> dict[str, Any]:
    return {
        "open_loop": list(_rows(horizons, ERRORS, "error")),
        "kept_track": list(_rows(horizons, SHARES, "share")),
        "return_correlation": [
            {"horizon": horizon, "correlation": Figure(found["return_correlation"], 0.0, "mean", cases).to_json()}
            for horizon, found in horizons.items()
            if (cases := int(found["cases"])) and math.isfinite(found["return_correlation"])
        ],
    }


def _rows(
    horizons: Mapping[int, Mapping[str, float]], targets: Mapping[str, str], name: str
) -> Iterator[dict[str, Any]]:
    """One row for each horizon and target, beside its baseline."""
    for horizon, found in horizons.items():
        for target, baseline in targets.items():
            beside: Any = baseline.removeprefix(f"{target}_")
            figure = Figure(found[target], found[baseline], beside, int(found["cases"]))
            yield {"target": target, "horizon": horizon, name: figure.to_json()}
