"""Measures of how well V tells what a rewrite saves, on every match of some episodes, beside trivial baselines.

    means = rule_means(rollouts, training)
    report = saving_report(held_out, rollouts.rule_of, savings(model.read(rollouts)), by_rule(rollouts.rule_of, means))
    report["regret_4"], report["regret_4_rule_mean"], report["regret_4_random"], report["regret_cases"]

Everything is measured on rewrites that were not trained on but are labelled all the same, as every match of a visited
state is, whether it was taken or not. Predictions are arrays over the tokens of the rollouts, in units of prices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.stats import rankdata

from rlflow.errors import InputError
from rlflow.representation.token_rollouts import TokenEpisode, TokenRollouts
from rlflow.world_model.match_level.token_encoder import TokenReading

TOP = (1, 4, 16)
"""Numbers of classes among which the best rewrite of a state is looked for."""

_ROUNDING_PERCENT = 1e-6  # savings that differ by less are the same
_RANDOM_ORDERS = 32


@dataclass(frozen=True, eq=False)
class Labels:
    """N classes of matches, each in one state; saving (N,) in units, unit_percent (N,), and the others (N,) int64."""

    token: np.ndarray
    count: np.ndarray
    apart: np.ndarray
    state: np.ndarray
    saving: np.ndarray
    unit_percent: np.ndarray

    def rows(self, index: np.ndarray) -> Labels:
        """The labels at index."""
        return Labels(*(getattr(self, entry.name)[index] for entry in fields(self)))


def labels(episodes: Sequence[TokenEpisode]) -> Labels:
    """Every class of every state of these episodes. `InputError` if there is none."""
    states = [(state, episode.unit_percent) for episode in episodes for state in episode.states if len(state.token)]
    if not states:
        raise InputError("diagnostics: the episodes show no match; collect more with collect_rollouts")
    sizes = [len(state.token) for state, _ in states]
    unit_percent = np.repeat([unit for _, unit in states], sizes)
    return Labels(
        token=np.concatenate([state.token for state, _ in states]),
        count=np.concatenate([state.count for state, _ in states]),
        apart=np.concatenate([state.apart for state, _ in states]),
        state=np.repeat(np.arange(len(states)), sizes),
        saving=np.concatenate([state.saving for state, _ in states]) / unit_percent,
        unit_percent=unit_percent,
    )


def earned(episodes: Sequence[TokenEpisode]) -> tuple[np.ndarray, np.ndarray]:
    """The tokens (N,) of the classes that were taken, and what each rewrite of them saved on average, (N,) in units.

    Rewrites of a class may save more or less together than each alone.
    """
    total, number = defaultdict[int, float](float), defaultdict[int, int](int)
    for episode in episodes:
        for state, step in zip(episode.states, episode.steps, strict=False):
            token = int(state.token[step.chosen])
            total[token] += step.reward / episode.unit_percent
            number[token] += step.taken
    return np.array([*total], np.int64), np.array([total[token] / number[token] for token in total])


def shares_apart(episodes: Sequence[TokenEpisode]) -> tuple[np.ndarray, np.ndarray]:
    """The tokens (N,) of these episodes, and the share (N,) of their matches, over all states, that are apart."""
    known = labels(episodes)
    token, place = np.unique(known.token, return_inverse=True)
    return token, np.bincount(place, known.apart) / np.bincount(place, known.count)


def savings(reading: TokenReading) -> np.ndarray:
    """(T,) what V reads that rewrites save, in units."""
    return np.sinh(reading.saving.double().numpy())


def rule_means(rollouts: TokenRollouts, episodes: Sequence[TokenEpisode]) -> dict[str, float]:
    """The mean saving, in units, of all matches of each rule in these episodes."""
    known = labels(episodes)
    total, number = defaultdict[str, float](float), defaultdict[str, int](int)
    for token, count, saving in zip(known.token.tolist(), known.count.tolist(), known.saving.tolist(), strict=True):
        total[rollouts.rule_of[token]] += count * saving
        number[rollouts.rule_of[token]] += count
    return {rule: total[rule] / number[rule] for rule in total}


def by_rule(rule_of: Sequence[str], means: Mapping[str, float]) -> np.ndarray:
    """(T,) the mean of each token's rule; for a rule without one, the mean over rules."""
    other = float(np.mean(list(means.values())))
    return np.array([means.get(rule, other) for rule in rule_of])


def saving_report(
    episodes: Sequence[TokenEpisode],
    rule_of: Sequence[str],
    predicted: np.ndarray,
    rule_mean: np.ndarray,
    *,
    seed: int = 0,
    top: Sequence[int] = TOP,
) -> dict[str, float]:
    """Measures of predicted savings (T,), beside those of `rule_mean` (T,) and of what needs no prediction.

    Those of `agreement` over every match, and:

    - `spearman`, `spearman_rule_mean`: the mean rank correlation over the classes of a state, in `spearman_cases`
      states.
      Kinds that save the same, often nothing, count against predictions that differ however little.
    - `regret_k`, `regret_k_rule_mean`, `regret_k_random`: the share of the best saving that is missed by taking the
      best of the k classes with the highest prediction, in `regret_cases` states in which anything can be saved.
    """
    known = labels(episodes)
    percent = known.saving * known.unit_percent
    model, means = (each[known.token] * known.unit_percent for each in (predicted, rule_mean))
    ends = np.flatnonzero(np.diff(known.state)) + 1
    states = list(zip(*(np.split(column, ends) for column in (percent, model, means)), strict=True))
    return agreement(known, rule_of, predicted, rule_mean) | _rank_correlations(states) | _regrets(states, top, seed)


def agreement(known: Labels, rule_of: Sequence[str], predicted: np.ndarray, rule_mean: np.ndarray) -> dict[str, float]:
    """Measures of predicted savings (T,) on these labels, each as often as it counts.

    A measure that is not defined on them is NaN.

    - `r2`, `r2_rule_mean`, `r2_zero`: the share of the variance of savings, in percent of the start's price, that is
      explained over `r2_cases` matches.
    - `within_rule`: the correlation of predicted and true savings, in units, after the means of each rule were taken
      off both, over the `within_rule_cases` matches of rules whose savings differ. That of the rules' means is 0.
    """
    percent = known.saving * known.unit_percent
    model, means = (each[known.token] * known.unit_percent for each in (predicted, rule_mean))
    rules = np.unique(rule_of, return_inverse=True)[1][known.token]
    within_rule, cases = _within(rules, known.saving, predicted[known.token], known.count)
    return {
        "r2": _r2(percent, model, known.count),
        "r2_rule_mean": _r2(percent, means, known.count),
        "r2_zero": _r2(percent, np.zeros(len(percent)), known.count),
        "r2_cases": float(known.count.sum()),
        "within_rule": within_rule,
        "within_rule_cases": cases,
    }


def _r2(true: np.ndarray, predicted: np.ndarray, weight: np.ndarray) -> float:
    if not len(true):
        return float("nan")
    spread = (weight * (true - np.average(true, weights=weight)) ** 2).sum()
    return float(1.0 - (weight * (true - predicted) ** 2).sum() / spread) if spread > 0 else float("nan")


def _within(group: np.ndarray, true: np.ndarray, predicted: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """The correlation after the means of groups were taken off, over groups in which `true` varies; and its cases."""
    true, predicted = _centred(group, true, weight), _centred(group, predicted, weight)
    varies = (np.bincount(group, np.abs(true)) > _ROUNDING_PERCENT)[group]
    true, predicted, weight = true[varies], predicted[varies], weight[varies]
    scale = np.sqrt((weight * true**2).sum() * (weight * predicted**2).sum())
    correlation = (weight * true * predicted).sum() / scale if scale > 0 else float("nan")
    return float(correlation), float(weight.sum())


def _centred(group: np.ndarray, values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    mean = np.bincount(group, weight * values) / np.maximum(np.bincount(group, weight), 1)
    return values - mean[group]


State = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Of the K classes of a state: what they save, what V predicts, and the mean of their rule, all (K,) in percent."""


def _rank_correlations(states: Sequence[State]) -> dict[str, float]:
    found = [
        (_spearman(true, model), _spearman(true, means))
        for true, model, means in states
        if np.ptp(true) > _ROUNDING_PERCENT
    ]
    of_model, of_means = np.mean(found, axis=0) if found else (np.nan, np.nan)
    return {
        "spearman": float(of_model),
        "spearman_rule_mean": float(of_means),
        "spearman_cases": float(len(found)),
    }


def _spearman(true: np.ndarray, predicted: np.ndarray) -> float:
    """The correlation of ranks, 0 where all predictions are the same."""
    ranks = [rankdata(np.round(values / _ROUNDING_PERCENT)) for values in (true, predicted)]
    one, other = (rank - rank.mean() for rank in ranks)
    scale = np.sqrt((one @ one) * (other @ other))
    return float(one @ other / scale) if scale > 0 else 0.0


def _regrets(states: Sequence[State], top: Sequence[int], seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    found = []
    for true, model, means in states:
        if true.max() > _ROUNDING_PERCENT:
            orders = [np.argsort(-model, kind="stable"), np.argsort(-means, kind="stable")]
            drawn = [rng.permutation(len(true)) for _ in range(_RANDOM_ORDERS)]
            by_order = np.array([[_regret(true, order[:k]) for k in top] for order in (*orders, *drawn)])
            found.append([by_order[0], by_order[1], by_order[2:].mean(axis=0)])
    mean = np.mean(found, axis=0) if found else np.full((3, len(top)), np.nan)
    names = ("", "_rule_mean", "_random")
    report = {f"regret_{k}{name}": float(mean[row, at]) for at, k in enumerate(top) for row, name in enumerate(names)}
    return report | {"regret_cases": float(len(found))}


def _regret(true: np.ndarray, chosen: np.ndarray) -> float:
    return float(1.0 - max(0.0, true[chosen].max()) / true.max())
