"""The page docs/pass_ordering.md: states, actions and rewards, and what each agent found.

    page(read_results(Path("data/results/pass_ordering/metrics.json")), documents)

The tables of observations, rewards and algorithms are made from the code that they describe, so that a new name cannot
be missing; figures are those of the committed files.
"""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from experiment.formatting import markdown_table, with_interval

from rlflow.passes.agents.algorithms import ALGORITHMS
from rlflow.passes.environment.rewards import REWARDS
from rlflow.passes.environment.shaping import POTENTIALS
from rlflow.runtime.timing.statistics import estimate

OBSERVED: Mapping[str, str] = {
    "counts": "(K + 1,) operations by type, as many types as the compiler's catalogue names and all others together",
    "cost": "(3,) FLOPs, transcendental operations and bytes accessed by cost analysis, in percent of the start",
    "tried": "(A,) the passes that were tried on this very program in this episode and left it as it is",
    "progress": "(1,) the share of the horizon that is over",
    "graph": "the program as a graph: nodes (N, 1 + F), an operator of `env.vocabulary` and its features; edges (E, 2)",
}
PAPER_PERCENT = {"GPT-2": 13.3, "GPT-2, BERT and ResNet": 10.4}
"""Improvements over the default passes that the paper prints, of PPO and of PPO with shaping."""
_COLUMNS = 120
ENHANCEMENTS = ("ppo_shaped", "ppo_shaped_by_bytes", "ppo_value_features")
"""Agents that are PPO and one thing more, as in the paper's comparison."""
_BASELINES = ("default", "fixpoint", "chain", "greedy", "beam", "random", "untrained", "best_known")


def page(metrics: Mapping[str, Any], documents: Mapping[str, Any], walks: Sequence[Mapping[str, Any]]) -> str:
    """The whole page. documents: what was found on each graph, by backend. walks: rows of benchmarks/pass_walks.py."""
    results = "\n".join(_backend(name, metrics[name], documents[name]) for name in metrics)
    return _INTRODUCTION.format(
        observations=_listed(OBSERVED),
        rewards=_listed({name: _first_line(function) for name, function in REWARDS.items()}),
        potentials=_listed({name: _first_line(function) for name, function in POTENTIALS.items()}),
        algorithms=", ".join(f"`{name}`" for name in ALGORITHMS),
        results=results,
        walks=walked(walks),
    )


def _backend(name: str, entrants: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    families = ", ".join(f"{family} ({len(sources)})" for family, sources in document["held_out"].items())
    agents = [entrant for entrant in entrants if len(entrants[entrant]["seeds"]) > 1 and entrant not in _BASELINES]
    baselines = [entrant for entrant in entrants if entrant not in agents]
    ordered = [*(b for b in _BASELINES if b in baselines), *(b for b in baselines if b not in _BASELINES), *agents]
    first = entrants[ordered[0]]
    return f"""## {name}: {first["graphs"]} held-out graphs

Held out: {families}. Trained on {len(document["training"])} graphs of other families.

{markdown_table(_HEAD, [_row(entrant, entrants[entrant]) for entrant in ordered])}
{_read(entrants, agents, first)}

The count ratio against the fixpoint, family by family:

{markdown_table(["", *document["held_out"]], [_by_family(entrant, entrants[entrant]) for entrant in ordered])}
{_wins(document, agents)}
{_graphs(document, _best(entrants, agents))}
{enhancements(entrants)}{foreseen(document)}"""


_HEAD = (
    "",
    "removed, over default %",
    "left, default over this %",
    "removed, over fixpoint %",
    "left, fixpoint over this %",
    "passes run",
    "run time, default over this",
)


def _row(entrant: str, figures: Mapping[str, Any]) -> list[str]:
    names = ("over_default_percent", "count_ratio_percent", "over_fixpoint_percent", "fixpoint_count_ratio_percent")
    ratio = figures["run_time_ratio"]
    return [
        entrant,
        *(_told(figures[name]) for name in names),
        _told(figures["passes_run"], 0),
        "" if ratio is None else f"{ratio:.3f}",
    ]


def _by_family(entrant: str, figures: Mapping[str, Any]) -> list[str]:
    return [entrant, *(_told(family["fixpoint_count_ratio_percent"]) for family in figures["families"].values())]


def _told(figure: Mapping[str, Any] | None, digits: int = 2) -> str:
    if figure is None:
        return ""
    return (
        with_interval(figure["value"], figure["ci95"], digits)
        if len(figure["values"]) > 1
        else f"{figure['value']:.{digits}f}"
    )


def _read(entrants: Mapping[str, Any], agents: Sequence[str], first: Mapping[str, Any]) -> str:
    """Say what the table shows: the best agent beside the paper's figures, the fixpoint and the best search."""
    best = _best(entrants, agents)
    over, left = entrants[best]["over_default_percent"], entrants[best]["fixpoint_count_ratio_percent"]
    beam, chain = (entrants[name]["fixpoint_count_ratio_percent"]["value"] for name in ("beam", "chain"))
    known = entrants["best_known"]["fixpoint_count_ratio_percent"]["value"]
    verdict = _verdict(left["value"], {"the fixpoint": 0.0, "beam search": beam, "the chain": chain})
    paper = " and ".join(f"{percent} % ({graphs})" for graphs, percent in PAPER_PERCENT.items())
    wrong = sum(figures["wrong_outputs"] for figures in entrants.values())
    text = f"""The default pipeline removes nothing on {first["apart"]} of the graphs, which the first column
leaves out. The best agent by what is left, on these very graphs, is {best}. By the paper's measure it is
{_told(over)} % ahead of the default; the paper prints {paper}. By what is left it stands at {_told(left)} %
against the fixpoint, beam search at {beam:.2f} % and the chain at {chain:.2f} %: {verdict}. The best
programs known stand at {known:.2f} %. {wrong} of all programs compute something else than the original.
By the paper's measure, a geometric mean, an entrant that removes nothing on one single graph stands at -100."""
    return textwrap.fill(" ".join(text.split()), _COLUMNS)


def _verdict(value: float, references: Mapping[str, float]) -> str:
    """Say how a figure stands to those of others."""
    ahead = [name for name, other in references.items() if value > other]
    level = [name for name, other in references.items() if value == other]
    behind = [name for name, other in references.items() if value < other]
    standings = (("ahead of", ahead), ("level with", level), ("behind", behind))
    return "it is " + "; ".join(f"{standing} {' and '.join(names)}" for standing, names in standings if names)


def _best(entrants: Mapping[str, Any], agents: Sequence[str]) -> str:
    return max(agents, key=lambda agent: entrants[agent]["fixpoint_count_ratio_percent"]["value"])


def _wins(document: Mapping[str, Any], agents: Sequence[str]) -> str:
    """The graphs one by one, as in the paper's Figure 3: where an agent is as good as the default, and the most."""
    entrants = document["entrants"]
    sources = [source for names in document["held_out"].values() for source in names]
    default, start = (entrants[name]["0"]["outcomes"] for name in ("default", "start"))
    rows = []
    for agent in agents:
        seeds = list(entrants[agent].values())
        left = {s: sorted(row["outcomes"][s]["operations"] for row in seeds)[len(seeds) // 2] for s in sources}
        as_good = sum(left[s] <= default[s]["operations"] for s in sources)
        most = max(sources, key=lambda s: default[s]["operations"] / left[s])
        rows.append(
            [
                agent,
                f"{as_good} of {len(sources)}",
                f"`{most}`: {start[most]['operations']} at the start, {default[most]['operations']} after the default, "
                f"{left[most]} after the agent",
            ]
        )
    table = markdown_table(["", "as good as the default on", "most"], rows)
    return f"Graph by graph, as in the paper's Figure 3 (the median over seeds):\n\n{table}"


def _graphs(document: Mapping[str, Any], agent: str) -> str:
    """The operations that are left on every graph, as in the paper's Figure 3: baselines, and the best agent."""
    entrants = document["entrants"]
    shown = [name for name in ("start", "default", "fixpoint", "beam") if name in entrants]
    rows = []
    for source in (source for names in document["held_out"].values() for source in names):
        left = [str(entrants[name]["0"]["outcomes"][source]["operations"]) for name in shown]
        found = [str(row["outcomes"][source]["operations"]) for row in entrants[agent].values()]
        rows.append([f"`{source}`", *left, ", ".join(found)])
    return f"Operations that are left, of {agent} by every seed:\n\n{markdown_table(['', *shown, agent], rows)}"


def enhancements(entrants: Mapping[str, Any]) -> str:
    """The paper's enhancements against plain PPO, seed by seed."""
    compared = [name for name in ENHANCEMENTS if "ppo" in entrants and name in entrants]
    if not compared:
        return ""
    plain, rows = _by_seed(entrants["ppo"]), []
    for name in compared:
        enhanced = _by_seed(entrants[name])
        change = estimate([enhanced[seed] - plain[seed] for seed in sorted(plain.keys() & enhanced.keys())])
        rows.append([name, with_interval(change.value, change.ci95)])
    table = markdown_table(["", "against PPO, points of the count ratio"], rows)
    return f"The paper's enhancements, seed by seed:\n\n{table}\n"


def _by_seed(figures: Mapping[str, Any]) -> dict[int, float]:
    return dict(zip(figures["seeds"], figures["fixpoint_count_ratio_percent"]["values"], strict=True))


def foreseen(document: Mapping[str, Any]) -> str:
    """The errors of what the world model foresees, beside those of the last state known; medians over seeds."""
    rows_of_seeds = document["entrants"].get("world_model")
    if not rows_of_seeds:
        return ""
    told = [row["open_loop"] for row in rows_of_seeds.values()]
    rows = []
    for ahead in sorted(set.intersection(*(set(of_seed) for of_seed in told)), key=int):
        errors = {
            name: statistics.median(of_seed[ahead][name] for of_seed in told)
            for name in ("cost", "cost_copy", "rule_mask", "rule_mask_copy")
        }
        figures = [f"{errors['cost']:.2f}", f"{errors['cost_copy']:.2f}"]
        masks = [f"{errors['rule_mask']:.3f}", f"{errors['rule_mask_copy']:.3f}"]
        rows.append([ahead, *figures, *masks])
    head = ["passes ahead", "error of the count, %", "if it stayed the same", "mask foreseen", "if it stayed the same"]
    dreamt = statistics.median(row["curve"][-1] for row in rows_of_seeds.values())
    removed = statistics.median(map(partial(_removed_percent, document), rows_of_seeds.values()))
    text = f"""The world model looks ahead on random episodes that it was not fitted on. Its dreams on the training
graphs end {dreamt:.0f} % below the start's operations, once the controller is trained in them; the programs that it
finds on the held-out graphs have {removed:.0f} % fewer operations than their start:"""
    return f"""{textwrap.fill(" ".join(text.split()), _COLUMNS)}

{markdown_table(head, rows)}
"""


def _removed_percent(document: Mapping[str, Any], row: Mapping[str, Any]) -> float:
    """The operations that the programs of a row have fewer than their start, the mean over graphs."""
    start = document["entrants"]["start"]["0"]["outcomes"]
    left = {source: outcome["operations"] / start[source]["operations"] for source, outcome in row["outcomes"].items()}
    return 100.0 * (1.0 - statistics.mean(left.values()))


_WALKED = (
    "",
    "random passes",
    "passes a second (by the compiler itself)",
    "answered by the cache",
    "failed passes",
    "wrong outputs",
    "lost processes",
    "memory, end over start",
)


def walked(rows: Sequence[Mapping[str, Any]]) -> str:
    """The random walks, a line for each compiler."""
    by_backend: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_backend.setdefault(row["name"].partition(":")[0], []).append(row)
    lines = []
    for backend, (steps, share, wrong, failed, lost, memory) in by_backend.items():
        speed = f"{steps['value']:.0f} ({steps['baseline_value']:.0f})"
        answered = f"{100 * share['value']:.0f} %"
        counts = [f"{row['value']:.0f}" for row in (failed, wrong, lost)]
        lines.append([f"`{backend}`", f"{steps['cases']}", speed, answered, *counts, f"{memory['value']:.2f}"])
    return markdown_table(_WALKED, lines).rstrip()


def _listed(meanings: Mapping[str, str]) -> str:
    return markdown_table(["name", "meaning"], [[f"`{name}`", meaning] for name, meaning in meanings.items()]).rstrip()


def _first_line(function: Any) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0]


_INTRODUCTION = """# Pass ordering

Compilers run whole-graph passes in an order that somebody fixed once. An agent can choose a better order for each graph
(*Target-independent XLA optimization using Reinforcement Learning*, the second paper that this project starts from).
Here that is an environment over real compilers: ONNX's public tools and XLA.

`make study NAME=pass_ordering.write_page` writes this page from the code and from `data/results/pass_ordering`; a test
compares the two.

```python
import gymnasium

env = gymnasium.make("rlflow.environments:rlflow/PassOrdering-v0", backend="onnx", sources=["model.onnx"])
observation, info = env.reset(seed=0)
observation, reward, terminated, truncated, info = env.step(0)
```

```
rlflow passes list --backend xla                      the passes and pipelines of a compiler
rlflow passes search model.onnx -o fewer.onnx         beam, greedy, random search; a record that replays
rlflow optimise model.onnx -o faster.onnx --passes onnx    passes first, then rules, checked and timed
make study NAME=pass_ordering                                    all that stands below
```

| backend | programs | passes |
| :-- | :-- | :-- |
| `onnx` | ONNX models | of onnxoptimizer, onnx-ir, onnxscript, onnxslim and ONNX Runtime; standard operators only |
| `onnx-contrib` | ONNX models | the same, and those that use ONNX Runtime's own operators |
| `xla` | StableHLO | of XLA's pipeline for the CPU, one by one: `pip install 'rlflow[xla]'` |
| `xla-onnx` | ONNX models as StableHLO | the same: `pip install 'rlflow[xla-onnx]'` |

To add a backend, write a class with the methods of `rlflow.passes.backend.PassBackend` and announce it as an entry
point of the group `rlflow.pass_backends`. The compiler runs in a process of its own: when a pass fails, aborts the
process or never ends, the program stays as it is, `info["error"]` says why, and the episode goes on. The compiler is
asked only once what a pass makes of a program (`cache=FILE` keeps the answers for other environments).

## State

A state is a program. `observation=` chooses which of these parts describe it, by default all vectors. `env.graph()`
returns the program as a graph of `rlflow.ir`, and `env.graph_arrays()` returns the arrays that encoders read.

{observations}

## Action

An action is the index of a pass, or A, which stops. `action_masks()` rules out what was tried on this program in this
episode and changed nothing; it does not depend on other episodes, so that an episode repeats. `env.fork()` returns
another environment in the same state, and `env.undo()` goes back one pass; neither runs the compiler.

## Reward

{rewards}

`rlflow.passes.environment.shaping.PotentialShaping` adds gamma Phi(s') - Phi(s), with the learner's gamma and 0 after
the end, which leaves the best policy the best one; the potentials:

{potentials}

## Agents

{algorithms}: Stable-Baselines3's and sb3-contrib's, each an option of
`conf/pass_agent`. `ppo_shaped` and `ppo_value_features` are the paper's two enhancements. `world_model` is the one of
RLFlow, unchanged: V and M are fitted on random episodes, where a pass stands for a rule and the program for its one
location, and C is trained in their dream, where no pass is run.

An agent plays one episode by its first choices and then samples others; its result is the best program that it met, as
with any search. Sampled episodes sometimes try what the agent would not choose, and often start on the way to the best
program so far (`rlflow.passes.agents.playing`, `effort.play` in `conf/study/pass_ordering.yaml`).

## How results are read

Every graph below belongs to a family that no agent was trained on. There are two measures. The paper's compares
*removed* operations: 100 % means twice as many as the reference has removed. The other compares the operations that are
*left*: 2 % means that the reference leaves 2 % more. Both are geometric means over the graphs, given as medians over
seeds with 95 % intervals. Run times are those of the first seed's programs.

| entrant | meaning |
| :-- | :-- |
| `default` | the compiler's own pipeline |
| `fixpoint` | a fixed round of simplifiers, repeated until nothing changes |
| `chain` | the best public order of whole libraries |
| `greedy`, `beam` | searches over the same passes as the agents have |
| `random` | passes drawn from the start, about as many as an agent runs |
| `untrained` | plays exactly as an agent does, but prefers nothing: the distance to it is what an agent has learned |
| `best_known` | the fewest operations that anybody here has left on each graph; no order that leaves fewer is known |

{results}
## Random passes

Walks of 20 random passes each, through small programs of all families in turn (`make bench NAME=pass_walks` writes
`data/results/pass_walks.json`). The last program of each walk is compared with the original. Memory is that of the
compiler's process in the last tenth of the walks, over that in the second tenth. The published walks were
taken two compilers at a time, on two cores: compare passes a second within a line, where the cache is the difference.

{walks}
"""
