"""The page of results: every table of the papers that was reproduced here, beside what the papers print.

    page(results, published)        Markdown, of which every number follows from a results file

results: documents by name, those of the papers' parts (schema `paper`) and those of other studies. published: the
papers' figures (conf/published.yaml). A part that was not run has no section, and the page says so at its head.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

Results = Mapping[str, Any]
Variant = Mapping[str, Any]

PARTS = ("graphs", "agents", "latency", "temperatures", "rewards", "candidates", "shapes")
"""The parts of the evaluations, each of which has sections of its own."""
_WIDTH = 120
_SCORES = ("dream_percent", "real_percent")
_SAME_POINTS = 0.05
"""Percentage points by which savings may differ and still be called the same."""


def page(results: Results, published: Mapping[str, Any]) -> str:
    """The page, with a section for each part that was run."""
    found = [section(results, published) for needs, section in _SECTIONS if all(name in results for name in needs)]
    return "\n".join(map(_filled, [_head(results), *found]))


def _head(results: Results) -> str:
    sizes = [
        f"| {part} | {', '.join(results[part])} | {max(len(one['seeds']) for one in _variants(results[part]))} |"
        for part in PARTS
        if part in results
    ]
    missing = [part for part in PARTS if part not in results]
    lacking = f"\nNot run yet at any size: {', '.join(missing)}.\n" if missing else ""
    return f"""# The papers' evaluations

Tables and figures of RLFlow and X-RLflow, from this project's own definitions and code, beside what the papers print.
`make paper` runs them at the size of `conf/paper.yaml`, which is what stands here; `make paper-full` has the
papers' size.
This page is written by `python pipelines/paper/page.py` from `data/results`, and a test compares the two. Figures are
medians over seeds with 95 % intervals. What methods save is by the roofline, in percent of the original: every node
costs by itself, as in a framework that fuses little, which is nearest to the papers' setting. What that is worth
where
ONNX Runtime fuses at its highest level stands beside it. Compare methods with each other, not numbers with the
papers',
which are measured on a GPU against TensorFlow.

| part | graphs | seeds |
| :-- | :-- | --: |
{chr(10).join(sizes)}
{lacking}"""


def _table_1(results: Results, published: Mapping[str, Any]) -> str:
    rows = []
    for graph, variants in results["graphs"].items():
        walk, printed = variants["walk"], published["table_1"].get(graph, ["", "", ""])
        ours = [f"{_value(walk, name):.0f}" for name in ("layers", "unique_layers", "rules_that_match", "matches")]
        rows.append([graph, *ours, *map(str, printed)])
    most = max(rows, key=lambda row: int(row[4]))
    head = ("graph", "layers", "unique", "rules that match", "matches", "paper: layers", "unique", "substitutions")
    return f"""## RLFlow, Table 1: the graphs

{_table(head, rows)}
{most[0]} offers the most rewrites, {most[4]}. The paper counts layers by hand, blocks of a transformer as one, and
its
substitutions are TASO's; here a layer is a region across whose border ONNX Runtime fuses nothing.
"""


def _correlations(results: Results, published: Mapping[str, Any]) -> str:
    pairs = (
        ("memory accesses", "correlation_runtime_ms_bytes_moved"),
        ("FLOPs", "correlation_runtime_ms_flops"),
        ("launches", "correlation_runtime_ms_launches"),
    )
    walks = {graph: variants["walk"] for graph, variants in results["graphs"].items()}
    rows = [[graph, *(_cell(walk, name, 2) for _, name in pairs)] for graph, walk in walks.items()]
    middle = {
        label: median([_value(walk, name) for walk in walks.values() if name in walk["figures"]])
        for label, name in pairs
        if any(name in walk["figures"] for walk in walks.values())
    }
    strongest = max(middle, key=lambda label: middle[label])
    told = ", ".join(f"{label} {value:.2f}" for label, value in middle.items())
    graphs = sum(int(sum(walk["figures"]["graphs"]["values"])) for walk in walks.values())
    return f"""## RLFlow, section 4.3: how the runtime goes together with other costs

Pearson's correlation of the runtime, as predicted for ONNX Runtime at its highest level, over {graphs} versions of
the graphs, met by random rewrites. Empty:
the
cost does not vary.

{_table(("graph", *(f"runtime and {label}" for label, _ in pairs)), rows)}
The paper says that runtime and memory accesses go together strongly, and prints no number. In the median over graphs:
{told}; the strongest is that with {strongest}.
"""


def _rewards(results: Results, published: Mapping[str, Any]) -> str:
    (graph, variants), *_ = results["rewards"].items()
    figure = {name: one for name, one in variants.items() if name.startswith("R")}
    meaning = {"R1": "0.8 / 0.2", "R2": "runtime", "R3": "0.1 / 0.9", "R4": "0.5 / 0.5", "R5": "incremental"}
    rows = [
        [
            name,
            meaning[name],
            _cell(one, "improvement_percent"),
            _half_way(one),
            _printed(published["section_4_3"], name),
        ]
        for name, one in figure.items()
    ]
    grid = _by_alpha(variants)
    grid_rows = [[f"{alpha:.1f}", _cell(one, "improvement_percent")] for alpha, one in grid.items()]
    best = _best(figure, "improvement_percent")
    best_alpha = max(grid, key=lambda alpha: _value(grid[alpha], "improvement_percent"))
    chosen = grid[published["best_alpha"]]
    meeting = "overlap" if _overlap(grid[best_alpha], chosen, "improvement_percent") else "are apart"
    verdict = (
        f"which is the paper's {published['best_alpha']}"
        if best_alpha == published["best_alpha"]
        else f"where the paper has {published['best_alpha']}; the intervals of both {meeting}"
    )
    head = ("reward", "what it is", "saved %", "updates to half of its best return", "paper: saved %")
    return f"""## RLFlow, Figure 5: what rewards the model-free agent learns by, on {graph}

{_table(head, rows)}
{best} saves most of the five, {_cell(figure[best], "improvement_percent")} %. The paper trains for 500 epochs on
the whole
BERT; here it is {len(next(iter(figure.values()))["curves"]["return_percent"][0])} updates.

The grid of alpha, the weight of runtime, with beta = 1 - alpha that of memory accesses:

{_table(("alpha", "saved %"), grid_rows)}
The largest median is at alpha = {best_alpha:.1f}, {verdict}.
"""


def _figure_6(results: Results, published: Mapping[str, Any]) -> str:
    agents = results["agents"]
    names = list(dict.fromkeys(name for variants in agents.values() for name in variants if _is_method(name)))
    rows = [
        [graph, *(_cell(variants[name], "improvement_percent") if name in variants else "" for name in names)]
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
        [graph, *(_cell(variants[name], "deployed_percent") if name in variants else "" for name in names)]
        for graph, variants in agents.items()
    ]
    better = [graph for graph, found in agents.items() if _gain(found, "rlflow", "taso") > _SAME_POINTS]
    worse = [graph for graph, found in agents.items() if _gain(found, "rlflow", "taso") < -_SAME_POINTS]
    ahead = [graph for graph, found in agents.items() if _gain(found, "dreamt", "model-free") > _SAME_POINTS]
    behind = [graph for graph, found in agents.items() if _gain(found, "dreamt", "model-free") < -_SAME_POINTS]
    shares = [
        100.0 * _value(found["rlflow"], "training_evaluations") / _value(found["model-free"], "training_evaluations")
        for found in agents.values()
    ]
    return f"""## RLFlow, Figure 6 and Table 2: what each method saves

In percent of the original's runtime by the roofline. *dreamt* is the controller that was trained in the dream,
acting alone;
*rlflow* is
greedy search, then the same controller with its proposals tried on the graph. *guided_chains* is what
`rlflow optimise --method rlflow` runs: chains and an e-graph, guided by the policy that ships.

{_table(("graph", *names), rows)}
RLFlow saves more than TASO's search on {_named(better)} and less on {_named(worse)}. The controller alone saves more
than the model-free agent on {_named(ahead)} and less on {_named(behind)}, with {min(shares):.0f} to {max(shares):.0f} %
of its real rewrites. The paper has RLFlow behind TASO's search on all four convolutional networks and ahead on both
transformers. Its own bars, as TensorFlow's time over that of each:

{_table(("graph", "TASO", "model-free", "RLFlow"), ratios)}
The same graphs by the prices of ONNX Runtime at its highest level, which no method here went by. It fuses by itself
what
rewrites of convolutional networks save:

{_table(("graph", *names), deployed)}
The memory of what RLFlow found, beside the paper's Table 2:

{_table(("graph", "bytes moved saved %", "peak saved %", "paper: time %", "memory %"), _memory(agents, published))}
Bytes moved fall on {_named(_saving(agents, "bytes_saved_percent"))}, the peak on
{_named(_saving(agents, "peak_memory_saved_percent"))}; no agent was asked for either.
"""


def _saving(agents: Results, name: str) -> list[str]:
    """The graphs of which RLFlow saves some of a cost."""
    return [graph for graph, found in agents.items() if _value(found["rlflow"], name) > _SAME_POINTS]


def _memory(agents: Results, published: Mapping[str, Any]) -> list[list[str]]:
    return [
        [
            graph,
            _cell(found["rlflow"], "bytes_saved_percent"),
            _cell(found["rlflow"], "peak_memory_saved_percent"),
            *map(str, published["table_2"].get(graph, ["", ""])),
        ]
        for graph, found in agents.items()
    ]


def _latency(results: Results, published: Mapping[str, Any]) -> str:
    rows = [
        [graph, agent, _interval(one, "as_written"), _interval(one, "deployed")]
        for graph, agents in results["latency"].items()
        for agent, one in agents.items()
    ]
    told = [one for agents in results["latency"].values() for agent, one in agents.items() if agent == "rlflow"]
    faster = sum(_low(one, "deployed") > 1.0 and _value(one, "latency_ratio_deployed") >= 1.02 for one in told)
    slower = sum(_high(one, "deployed") < 1.0 and _value(one, "latency_ratio_deployed") <= 0.98 for one in told)
    return f"""## RLFlow, Figure 6, measured: latency in ONNX Runtime

The original's latency over that of what each method found, in alternating fresh sessions on one thread, with 95 %
intervals over rounds. *original* is the original timed twice: the noise. As written: ONNX Runtime's own graph
optimisation is off, which is nearest to the paper's setting; deployed: at its highest level, what a user runs.

{_table(("graph", "method", "as written", "deployed"), rows)}
Of {len(told)} graphs, as deployed, RLFlow's is faster beyond noise on {faster} and slower on {slower}; a difference
under
2 % counts as none. The paper measures against TensorFlow on a GPU, where more is left to gain.
"""


def _figure_7(results: Results, published: Mapping[str, Any]) -> str:
    rows = []
    for graph, found in results["agents"].items():
        printed = published["figure_7"].get(graph, ["", ""])
        agent = found["rlflow"]
        rows.append(
            [
                graph,
                _cell(found["taso"], "optimisation_s", 1),
                _cell(agent, "optimisation_s", 1),
                _cell(agent, "training_s", 0),
                _cell(agent, "training_evaluations", 0),
                _cell(found["model-free"], "training_evaluations", 0),
                *map(str, printed),
            ]
        )
    quicker = [
        graph
        for graph, found in results["agents"].items()
        if _value(found["rlflow"], "optimisation_s") < _value(found["taso"], "optimisation_s")
    ]
    never = [
        graph
        for graph, found in results["agents"].items()
        if _value(found["rlflow"], "training_s") > _value(found["taso"], "optimisation_s")
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

{_table(head, rows)}
Without its training RLFlow is quicker than TASO's search on {_named(quicker)}. Its training, which the paper leaves
out,
alone takes longer than that search on {_named(never)}. The paper counts a million real interactions against four
million
of the model-free agent.
"""


def _figure_8(results: Results, published: Mapping[str, Any]) -> str:
    rows = []
    for graph, found in results["agents"].items():
        curves = found["rlflow"]["curves"]
        rows.append(
            [
                graph,
                *(_ends(curves[name]) for name in ("encoder/saving", "memory/births")),
                _ends(curves["return_percent"]),
                _best_of(curves["real_score_percent"]),
            ]
        )
    head = (
        "graph",
        "V's loss, first and last epoch",
        "M's loss of births",
        "return in the dream %, first and last",
        "best on the graph %",
    )
    return f"""## RLFlow, Figures 8 and 9: how the world model and the controller learn

Medians over seeds; the whole courses are in `data/results/paper/agents.json`, and drawn in
[learning.png](../data/results/paper/learning.png), the dreamt returns of Figure 9 with the real scores of the same
controllers beside them.

{_table(head, rows)}
Losses fall on all graphs, as in the paper; that says little by itself, which is why its Figure 9 has the real
scores here.
"""


def _figure_10(results: Results, published: Mapping[str, Any]) -> str:
    rows = []
    for graph, found in results["agents"].items():
        counts = found["rlflow"]["counts"]
        leading = ", ".join(f"{name} {count}" for name, count in list(counts.items())[:3])
        rows.append([graph, str(len(counts)), str(sum(counts.values())), leading])
    return f"""## RLFlow, Figure 10: which rules are applied

All seeds together; the heat map is [rules.png](../data/results/paper/rules.png).

{_table(("graph", "rules", "times", "most often"), rows)}
The paper has one rule over twenty times on BERT; here {_most_applied(results["agents"])}.
"""


def _most_applied(agents: Results) -> str:
    """The graph on which one rule is applied most often, in words."""
    counts = {graph: found["rlflow"]["counts"] for graph, found in agents.items() if found["rlflow"]["counts"]}
    graph = max(counts, key=lambda name: max(counts[name].values()))
    rule, times = next(iter(counts[graph].items()))
    seeds = len(agents[graph]["rlflow"]["seeds"])
    return f"{rule} is applied {times / seeds:.0f} times on {graph} by each seed"


def _table_3(results: Results, published: Mapping[str, Any]) -> str:
    (graph, variants), *_ = results["temperatures"].items()
    printed = {row[0]: row[1:] for row in published["table_3"]}
    rows = []
    for name, one in variants.items():
        if not name.startswith("tau "):
            continue
        tau, pooled = float(name[4:]), variants.get(f"pooled {name}")
        scores = [_cell(each, score) if each else "" for each in (one, pooled) for score in _SCORES]
        papers = [f"{value:.2f}" for value in printed.get(tau, [])] or ["", ""]
        rows.append([f"{tau:g}", *scores, *papers])
    worst = 100.0 * max(_apart(variants, "tau "))
    pooled_apart = _apart(variants, "pooled tau ")
    pooled_told = f", that of one vector by at most {100.0 * max(pooled_apart):.0f} %" if pooled_apart else ""
    head = (
        "tau",
        "tokens: dream %",
        "reality %",
        "one vector: dream %",
        "reality %",
        "paper: dream %",
        "reality %",
    )
    return f"""## RLFlow, Table 3: the temperature of the dream, on {graph}

Two world models: over match tokens, and the paper's own over one vector for a graph, which acts with a few rules
chosen for the graph.

{_table(head, rows)}
Between tau 0.5 and 1.5 the dream over tokens is away from reality by at most {worst:.0f} % of it
({"within" if worst <= 15 else "beyond"} the 15 % that were asked for){pooled_told}; in the paper it promises a fifth of
what comes true.
"""


def _apart(variants: Mapping[str, Variant], prefix: str) -> list[float]:
    """The share of the real score by which the dream is away from it, at temperatures from 0.5 to 1.5."""
    shares = []
    for name, one in variants.items():
        if name.startswith(prefix) and 0.5 <= float(name.removeprefix(prefix)) <= 1.5:
            dreamt, real = (_value(one, score) for score in _SCORES)
            shares.append(abs(dreamt - real) / abs(real) if real else float("inf"))
    return shares


def _speed(results: Results, published: Mapping[str, Any]) -> str:
    steps = {graph: _value(found["walk"], "step_ms") for graph, found in results["graphs"].items()}
    speed = {row["name"]: row["value"] for row in results["bench"]}
    dream_ms = 1000.0 / speed["dream/dream_steps_per_s (64 dreams)"]
    shares = [
        f"{_of(found['share_of_interactions'])} on {graph} ({found['as_good']} of {len(found['seeds'])} seeds as good)"
        for graph, found in results["sample_efficiency"].items()
    ]
    slowest = max(steps, key=lambda graph: steps[graph])
    return f"""## RLFlow, section 4.4: real interactions, and the time of a step

A random step on the real graph with all rules takes {min(steps.values()):.1f} to {steps[slowest]:.1f} ms, pricing
included
({slowest} is the slowest); a step in a batch of 64 dreams {dream_ms:.3f} ms. The paper has
{published["step_ms"]["real"]} and
{published["step_ms"]["dream"]} ms on ResNet-50. Rewrites that the agent with a world model carries out until it is
as good as
the model-free agent's best, as a share of that agent's: {"; ".join(shares)}. The paper has a fourth.
"""


def _unseen(results: Results, published: Mapping[str, Any]) -> str:
    rows, shares = [], []
    for graph, found in results["agents"].items():
        for name, one in found.items():
            if name.startswith("unseen "):
                acting, greedy = _value(one, "improvement_percent"), _value(one, "greedy_percent")
                rows.append([graph, name[7:], _cell(one, "improvement_percent"), _cell(one, "greedy_percent")])
                shares.append(acting >= greedy - _SAME_POINTS)
    head = ("graph", "random rewrites before", "the controller alone, saved %", "greedy search, saved %")
    return f"""## RLFlow, question 2: states of the graph that the agent has not seen

{_table(head, rows)}
The controller alone is as good as greedy search in {sum(shares)} of {len(shares)} cases: it acts in states that it
has not
seen, and a search that costs nothing to train is the stronger one there where it does not.
"""


def _questions(results: Results, published: Mapping[str, Any]) -> str:
    fit, sweep = results["fit_world_model"], results["temperature_sweep"]
    described = "; ".join(
        f"{graph}: R2 {found['saving_r2']['value']:.2f} (the mean of the rule {found['saving_r2']['baseline']:.2f})"
        for graph, found in fit.items()
    )
    points = [
        f"{graph} {point['dream_score_percent']:.2f} / {point['real_score_percent']:.2f}"
        for graph, found in sweep.items()
        for point in found["points"]
        if point["temperature"] == 1.0
    ]
    agents = results["agents"]
    over = {graph: _value(found["rlflow"], "improvement_percent") for graph, found in agents.items()}
    transformers = [over[graph] for graph in ("bert", "vit") if graph in over]
    others = [value for graph, value in over.items() if graph not in ("bert", "vit")]
    return f"""## The paper's five questions

1. *Can the dynamics be modelled?* Yes: what a rewrite saves on held-out states is told with {described}.
2. *Do policies act well in unseen states of the graph?* The table above says where.
3. *Are rewards estimated well?* By the same R2; the predicted savings of whole episodes are those of the fourth question.
4. *Does what is learned in the dream work in reality?* Dreamt against real score at tau = 1, in percent:
   {"; ".join(points)}.
5. *Is it better on transformers?* It saves {_range(transformers)} on them and {_range(others)} on convolutional
   networks.
"""


def _candidates(results: Results, published: Mapping[str, Any]) -> str:
    table = results["candidates"]
    names = ("greedy", "taso", "equality_saturation", "x-rlflow")
    rows = [
        [
            graph,
            *(_cell(found[name], "improvement_percent") for name in names),
            *(_cell(found[name], "optimisation_s", 1) for name in names[1:]),
            _cell(found["x-rlflow"], "training_s", 0),
        ]
        for graph, found in table.items()
    ]
    greedy = [graph for graph, found in table.items() if _gain(found, "x-rlflow", "greedy") >= -_SAME_POINTS]
    taso = [graph for graph, found in table.items() if _gain(found, "x-rlflow", "taso") > _SAME_POINTS]
    saturated = [
        graph for graph, found in table.items() if _gain(found, "x-rlflow", "equality_saturation") > _SAME_POINTS
    ]
    head = (
        "graph",
        "greedy %",
        "TASO's search %",
        "equality saturation %",
        "X-RLflow %",
        "TASO's s",
        "saturation s",
        "X-RLflow s",
        "its training s",
    )
    return f"""## X-RLflow: savings and times on its networks

{_table(head, rows)}
Its agent is at least as good as greedy search on {len(greedy)} of {len(table)} networks ({_named(greedy)}), better
than
TASO's search on {_named(taso)}, and better than equality saturation on {_named(saturated)}. The slides claim an
advantage
over both everywhere, print no number, and leave training out of the time.
"""


def _shapes(results: Results, published: Mapping[str, Any]) -> str:
    rows, shares = [], []
    for found in results["shapes"].values():
        for shape, one in found.items():
            names = ("transferred_percent", "special_percent", "greedy_percent")
            rows.append([shape, *(_cell(one, name) for name in names)])
            special = _value(one, "special_percent")
            shares.append(_value(one, "transferred_percent") / special if special else 1.0)
    head = ("shape", "trained on another shape %", "trained on this one %", "greedy search %")
    return f"""## X-RLflow: one policy over tensor shapes

{_table(head, rows)}
A policy that has not seen the shape saves at least {100 * min(shares):.0f} % of what one that was trained on it
saves. The
slides show such transfer, and no number.
"""


def _cost_model(results: Results, published: Mapping[str, Any]) -> str:
    rows = [
        [
            graph,
            f"{one['cost_model_ms']:.2f}",
            f"{one['end_to_end_ms']:.2f}",
            f"{one['difference_percent']:+.1f}",
            f"{50.0 * (one['control_ci95'][1] - one['control_ci95'][0]):.1f}",
            _printed(published["cost_model"], graph),
        ]
        for graph, one in results["cost_accuracy"].items()
    ]
    away = median([abs(one["difference_percent"]) for one in results["cost_accuracy"].values()])
    head = (
        "graph",
        "cost model ms",
        "end to end ms",
        "difference %",
        "half-width of the original against itself %",
        "slides: difference %",
    )
    return f"""## X-RLflow: the cost model against end to end

{_table(head, rows)}
The measured cost model is {away:.1f} % away in the median. It prices fused regions with cold weights; the slides'
adds up
operators, each measured alone.
"""


def _claims(results: Results, published: Mapping[str, Any]) -> str:
    table = results["candidates"]
    beyond = [graph for graph, found in table.items() if _gain(found, "x-rlflow", "greedy") > _SAME_POINTS]
    return f"""## X-RLflow's three claims

1. *A short loss for a later gain:* more than greedy search, which takes none, on {len(beyond)} of {len(table)}
   networks.
2. *Sparse and delayed rewards:* `reward=end_to_end` measures at every step, every n steps or at the end; `make
   reward-study` compares them.
3. *One agent for other tensor shapes:* the table above, where the part was run.
"""


_SECTIONS: tuple[tuple[tuple[str, ...], Callable[[Results, Mapping[str, Any]], str]], ...] = (
    (("graphs",), _table_1),
    (("graphs",), _correlations),
    (("rewards",), _rewards),
    (("agents",), _figure_6),
    (("latency",), _latency),
    (("agents",), _figure_7),
    (("agents",), _figure_8),
    (("agents",), _figure_10),
    (("temperatures",), _table_3),
    (("graphs", "bench", "sample_efficiency"), _speed),
    (("agents",), _unseen),
    (("agents", "fit_world_model", "temperature_sweep"), _questions),
    (("candidates",), _candidates),
    (("shapes",), _shapes),
    (("cost_accuracy",), _cost_model),
    (("candidates",), _claims),
)
"""Each section after the documents that it is made from."""


def _filled(section: str) -> str:
    """The section with its paragraphs broken into lines anew; headings, tables and lists stay as they are."""
    paragraphs = []
    for paragraph in section.strip().split("\n\n"):
        lines = paragraph.split("\n")
        rows = [line for line in lines if line.startswith(("|", "#"))]
        prose = " ".join(line.strip() for line in lines[len(rows) :])
        items = re.split(r" (?=\d\. )", prose) if prose.startswith("1. ") else [prose]
        filled = [textwrap.fill(item, _WIDTH, subsequent_indent="   " * (len(items) > 1)) for item in items if item]
        paragraphs.append("\n".join(rows) + "\n" * bool(rows and filled) * 2 + "\n".join(filled))
    return "\n\n".join(paragraphs) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    alignment = [":--", *("--:" for _ in head[1:])]
    return "".join("| " + " | ".join(row) + " |\n" for row in [list(head), alignment, *rows])


def _variants(document: Mapping[str, Mapping[str, Variant]]) -> list[Variant]:
    return [variant for variants in document.values() for variant in variants.values()]


def _value(variant: Variant, name: str) -> float:
    value: float = variant["figures"][name]["value"]
    return value


def _cell(variant: Variant, name: str, digits: int = 2) -> str:
    """The median, with its interval where there are several seeds; empty where there is no such figure."""
    if name not in variant["figures"]:
        return ""
    figure = variant["figures"][name]
    return _of(figure, digits) if len(figure["values"]) > 1 else f"{figure['value']:.{digits}f}"


def _of(figure: Mapping[str, Any], digits: int = 2) -> str:
    low, high = figure["ci95"]
    return f"{figure['value']:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def _low(variant: Variant, setting: str) -> float:
    return _value(variant, f"latency_ratio_{setting}_low")


def _high(variant: Variant, setting: str) -> float:
    return _value(variant, f"latency_ratio_{setting}_high")


def _interval(variant: Variant, setting: str) -> str:
    ratio = _value(variant, f"latency_ratio_{setting}")
    return f"{ratio:.3f} [{_low(variant, setting):.3f}, {_high(variant, setting):.3f}]"


def _is_method(name: str) -> bool:
    return not name.startswith(("unseen ", "tau ", "pooled "))


def _gain(found: Mapping[str, Variant], one: str, other: str) -> float:
    """The points by which one method saves more than another."""
    return _value(found[one], "improvement_percent") - _value(found[other], "improvement_percent")


def _best(variants: Mapping[str, Variant], name: str) -> str:
    return max(variants, key=lambda variant: _value(variants[variant], name))


def _overlap(one: Variant, other: Variant, name: str) -> bool:
    (low, high), (other_low, other_high) = one["figures"][name]["ci95"], other["figures"][name]["ci95"]
    return bool(low <= other_high and other_low <= high)


def _by_alpha(variants: Mapping[str, Variant]) -> dict[float, Variant]:
    """The variants of the grid; those of Figure 5 that are a point of it stand in for it."""
    grid = {0.8: variants["R1"], 0.1: variants["R3"], 0.5: variants["R4"]}
    grid |= {float(name[6:]): one for name, one in variants.items() if name.startswith("alpha ")}
    return dict(sorted(grid.items()))


def _half_way(variant: Variant) -> str:
    """The updates after which the return was first half way from its first to its best; the median over seeds."""
    updates = []
    for course in variant["curves"]["return_percent"]:
        least = course[0] + 0.5 * (max(course) - course[0])
        updates.append(next(number for number, value in enumerate(course, start=1) if value >= least))
    return f"{median(updates):g}"


def _ends(courses: Sequence[Sequence[float]]) -> str:
    return f"{median([course[0] for course in courses]):.3f}, {median([course[-1] for course in courses]):.3f}"


def _best_of(courses: Sequence[Sequence[float]]) -> str:
    return f"{median([max(course) for course in courses]):.2f}"


def _printed(figures: Mapping[str, float], name: str) -> str:
    return f"{figures[name]:g}" if name in figures else ""


def _named(graphs: Sequence[str]) -> str:
    return ", ".join(graphs) if graphs else "none"


def _range(values: Sequence[float]) -> str:
    if not values:
        return "nothing that was measured"
    return f"{min(values):.2f} to {max(values):.2f} %"
