"""The sections on what agents save, of what, how fast, and by which rules: Table 1, Figures 6, 7 and 10."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.paper.told import (
    SAME_POINTS,
    Results,
    Variant,
    gain_points,
    is_method,
    markdown_table,
    median_of,
    median_told,
    names_told,
)


def table_1_section(results: Results, published: Mapping[str, Any]) -> str:
    rows = []
    for graph, variants in results["graphs"].items():
        walk, printed = variants["walk"], published["table_1"].get(graph, ["", "", ""])
        ours = [f"{median_of(walk, name):.0f}" for name in ("layers", "unique_layers", "rules_that_match", "matches")]
        rows.append([graph, *ours, *map(str, printed)])
    most = max(rows, key=lambda row: int(row[4]))
    head = ("graph", "layers", "unique", "rules that match", "matches", "paper: layers", "unique", "substitutions")
    return f"""## RLFlow, Table 1: the graphs

{markdown_table(head, rows)}
{most[0]} offers the most rewrites, {most[4]}. The paper counts layers by hand, blocks of a transformer as one, and
its substitutions are TASO's; here a layer is a region across whose border ONNX Runtime fuses nothing.
"""


def figure_6_section(results: Results, published: Mapping[str, Any]) -> str:
    agents = results["agents"]
    names = list(dict.fromkeys(name for variants in agents.values() for name in variants if is_method(name)))
    rows = [
        [graph, *(median_told(variants[name], "improvement_percent") if name in variants else "" for name in names)]
        for graph, variants in agents.items()
    ]
    ratios = [
        [
            graph,
            f"{printed[0] / printed[2]:.2f}",
            f"{printed[0] / printed[3]:.2f}",
            f"{printed[0] / printed[4]:.2f}",
        ]
        for graph, printed in published["figure_6"].items()
        if graph in agents
    ]
    deployed = [
        [graph, *(median_told(variants[name], "deployed_percent") if name in variants else "" for name in names)]
        for graph, variants in agents.items()
    ]
    better = [graph for graph, found in agents.items() if gain_points(found, "rlflow", "taso") > SAME_POINTS]
    worse = [graph for graph, found in agents.items() if gain_points(found, "rlflow", "taso") < -SAME_POINTS]
    shipped = [graph for graph, found in agents.items() if gain_points(found, "guided_chains", "taso") > SAME_POINTS]
    ahead = [graph for graph, found in agents.items() if gain_points(found, "dreamt", "model-free") > SAME_POINTS]
    behind = [graph for graph, found in agents.items() if gain_points(found, "dreamt", "model-free") < -SAME_POINTS]
    shares = [
        100.0
        * median_of(found["rlflow"], "training_evaluations")
        / median_of(found["model-free"], "training_evaluations")
        for found in agents.values()
    ]
    return f"""## RLFlow, Figure 6 and Table 2: what each method saves

In percent of the original's runtime by the roofline. *dreamt* is the controller that was trained in the dream, acting
alone; *rlflow* is greedy search, then the same controller with its proposals tried on the graph. *guided_chains* is
what `rlflow optimise --method rlflow` runs: chains and an e-graph, guided by the policy that ships.

{markdown_table(("graph", *names), rows)}
RLFlow saves more than TASO's search on {names_told(better)} and less on {names_told(worse)}; the policy that ships
saves more than it on {names_told(shipped)}. The controller alone saves more than the model-free agent on
{names_told(ahead)} and less on {names_told(behind)}, with {min(shares):.0f} to {max(shares):.0f} % of its real
rewrites. The paper has RLFlow behind TASO's search on all four convolutional networks and ahead on both transformers.
Its own bars, as TensorFlow's time over that of each:

{markdown_table(("graph", "TASO", "model-free", "RLFlow"), ratios)}
The same graphs by the prices of ONNX Runtime at its highest level, which no method here went by. It fuses by itself
what rewrites of convolutional networks save:

{markdown_table(("graph", *names), deployed)}
The memory of what RLFlow found, beside the paper's Table 2:

{_memory(agents, published)}
Bytes moved fall on {names_told(_saving(agents, "bytes_saved_percent"))}, the peak on
{names_told(_saving(agents, "peak_memory_saved_percent"))}; no agent was asked for either.
"""


def _saving(agents: Results, name: str) -> list[str]:
    """The graphs of which RLFlow saves some of a cost."""
    return [graph for graph, found in agents.items() if median_of(found["rlflow"], name) > SAME_POINTS]


def _memory(agents: Results, published: Mapping[str, Any]) -> str:
    """The table of the memory of what RLFlow found."""
    head = ("graph", "bytes moved saved %", "peak saved %", "paper: time %", "memory %")
    rows = [
        [
            graph,
            median_told(found["rlflow"], "bytes_saved_percent"),
            median_told(found["rlflow"], "peak_memory_saved_percent"),
            *map(str, published["table_2"].get(graph, ["", ""])),
        ]
        for graph, found in agents.items()
    ]
    return markdown_table(head, rows)


def latency_section(results: Results, published: Mapping[str, Any]) -> str:
    rows = [
        [graph, agent, _interval(one, "as_written"), _interval(one, "deployed")]
        for graph, agents in results["latency"].items()
        for agent, one in agents.items()
    ]
    told = [one for agents in results["latency"].values() for agent, one in agents.items() if agent == "rlflow"]
    faster = sum(_low(one, "deployed") > 1.0 and median_of(one, "latency_ratio_deployed") >= 1.02 for one in told)
    slower = sum(_high(one, "deployed") < 1.0 and median_of(one, "latency_ratio_deployed") <= 0.98 for one in told)
    return f"""## RLFlow, Figure 6, measured: latency in ONNX Runtime

The original's latency over that of what each method found, in alternating fresh sessions on one thread, with 95 %
intervals over rounds. *original* is the original timed twice: the noise. As written: ONNX Runtime's own graph
optimisation is off, which is nearest to the paper's setting; deployed: at its highest level, what a user runs.

{markdown_table(("graph", "method", "as written", "deployed"), rows)}
Of {len(told)} graphs, as deployed, RLFlow's is faster beyond noise on {faster} and slower on {slower}; a difference
under 2 % counts as none. The paper measures against TensorFlow on a GPU, where more is left to gain. The
original as written stands for the framework; PyTorch itself is below.
"""


def frameworks_section(results: Results, published: Mapping[str, Any]) -> str:
    rows, slower, factors = [], [], []
    for graph, variants in results["frameworks"].items():
        own, other = variants["original"], variants["pytorch"]
        times_ms = [
            median_of(other, "latency_deployed_ms"),
            *(median_of(own, f"latency_{setting}_ms") for setting in ("as_written", "deployed")),
        ]
        ratios = [_interval(one, setting) for setting in ("as_written", "deployed") for one in (other, own)]
        rows.append([graph, *(f"{one:.2f}" for one in times_ms), *ratios])
        factors.append(median_of(other, "latency_ratio_deployed"))
        if _high(other, "deployed") < 1.0:
            slower.append(graph)
    head = (
        "graph",
        "PyTorch ms",
        "as written ms",
        "deployed ms",
        "as written over PyTorch",
        "over itself",
        "deployed over PyTorch",
        "over itself",
    )
    return f"""## RLFlow, Figure 6: PyTorch beside ONNX Runtime

The originals before any rewrite, in alternating rounds on one thread, each opened anew; PyTorch runs them operator by
operator, as onnx2torch translates them, and computes the same. Ratios are ONNX Runtime's latency over PyTorch's, with
95 % intervals over rounds; *over itself* is the noise.

{markdown_table(head, rows)}
PyTorch is slower than ONNX Runtime as deployed on {names_told(slower)}: the latter takes {min(factors):.2f} to
{max(factors):.2f} of its time. A speed-up that is told over a framework contains that factor before anything was
rewritten, which is why methods here are compared with ONNX Runtime. The paper measures over TensorFlow.
"""


def _low(variant: Variant, setting: str) -> float:
    return median_of(variant, f"latency_ratio_{setting}_low")


def _high(variant: Variant, setting: str) -> float:
    return median_of(variant, f"latency_ratio_{setting}_high")


def _interval(variant: Variant, setting: str) -> str:
    ratio = median_of(variant, f"latency_ratio_{setting}")
    return f"{ratio:.3f} [{_low(variant, setting):.3f}, {_high(variant, setting):.3f}]"


def figure_7_section(results: Results, published: Mapping[str, Any]) -> str:
    rows = []
    for graph, found in results["agents"].items():
        printed = published["figure_7"].get(graph, ["", ""])
        agent = found["rlflow"]
        rows.append(
            [
                graph,
                median_told(found["taso"], "optimisation_s", 1),
                median_told(agent, "optimisation_s", 1),
                median_told(agent, "training_s", 0),
                median_told(agent, "training_evaluations", 0),
                median_told(found["model-free"], "training_evaluations", 0),
                *map(str, printed),
            ]
        )
    quicker = [
        graph
        for graph, found in results["agents"].items()
        if median_of(found["rlflow"], "optimisation_s") < median_of(found["taso"], "optimisation_s")
    ]
    never = [
        graph
        for graph, found in results["agents"].items()
        if median_of(found["rlflow"], "training_s") > median_of(found["taso"], "optimisation_s")
    ]
    head = (
        "graph",
        "TASO's search s",
        "RLFlow s",
        "its training s",
        "its real rewrites",
        "model-free's",
        "paper: TASO s",
        "RLFlow s",
    )
    return f"""## RLFlow, Figure 7: the time that optimisation takes, with and without training

{markdown_table(head, rows)}
Two cells ran side by side, and at times other work beside them, so that seconds are rough. Without its training
RLFlow is quicker than TASO's search on {names_told(quicker)}. Its training, which the paper leaves out, alone takes
longer than that search on {names_told(never)}. The paper counts a million real interactions against four million of
the model-free agent.
"""


def budget_section(results: Results, published: Mapping[str, Any]) -> str:
    """The savings of TASO's search by the number of graphs that it has tried."""
    searched = {
        graph: results["headroom"][graph]["analytic"]["backtracking"]["at"]
        for graph in published["table_1"]
        if graph in results["headroom"]
    }
    budgets = list(next(iter(searched.values())))
    rows = [[graph, *(f"{at[most]['improvement_percent']:.2f}" for most in budgets)] for graph, at in searched.items()]
    late = [graph for graph, at in searched.items() if _late(at, budgets)]
    return f"""## TASO's search: what it saves for its budget

Percent saved by the roofline after so many rewrites were tried (`make study NAME=headroom`; all methods are drawn in
[improvement.png](../data/results/headroom/improvement.png)).

{markdown_table(("graph", *budgets), rows)}
With a tenth of the largest budget it has less than nine tenths of what it ends with on {names_told(late)}. The paper
gives the search one budget for all graphs, and no curve.
"""


def _late(at: Mapping[str, Mapping[str, float]], budgets: list[str]) -> bool:
    """A search that finds more than a tenth of its savings in the last nine tenths of its budget."""
    last, before = (at[most]["improvement_percent"] for most in (budgets[-1], budgets[-3]))
    return before < 0.9 * last


def figure_10_section(results: Results, published: Mapping[str, Any]) -> str:
    rows = []
    for graph, found in results["agents"].items():
        counts = found["rlflow"]["counts"]
        leading = ", ".join(f"{name} {count}" for name, count in list(counts.items())[:3])
        rows.append([graph, str(len(counts)), str(sum(counts.values())), leading])
    return f"""## RLFlow, Figure 10: which rules are applied

All seeds together; the heat map is [rules.png](../data/results/paper/rules.png).

{markdown_table(("graph", "rules", "times", "most often"), rows)}
The paper has one rule over twenty times on BERT; here {_most_applied(results["agents"])}.
"""


def _most_applied(agents: Results) -> str:
    """The graph on which one rule is applied most often, in words."""
    counts = {graph: found["rlflow"]["counts"] for graph, found in agents.items() if found["rlflow"]["counts"]}
    graph = max(counts, key=lambda name: max(counts[name].values()))
    rule, times = next(iter(counts[graph].items()))
    seeds = len(agents[graph]["rlflow"]["seeds"])
    return f"{rule} is applied {times / seeds:.0f} times on {graph} by each seed"
