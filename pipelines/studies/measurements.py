"""The documents that benchmarks and fuzzing leave in data/results: figures of the library, beside the experiment."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from rlflow.schemas.figures import NOT_EMPTY, Cases, Count, Document, Error, Hash, Positive, Seconds, Tally, Text
from rlflow.schemas.rules import RecallTotals

Some = Annotated[int, Meta(ge=1)]
RulesFired = dict[Text, Some]
"""How many rules fired, by the element type of what they replaced. Empty in what was written before it was counted."""


class Benchmark(Document):
    """One benchmark's value beside its baseline."""

    name: Text
    value: float
    unit: Text
    baseline: Text
    """The name of baseline_value: the trivial alternative or the bound that was promised."""
    baseline_value: float | None
    cases: Cases
    """Repetitions or items behind the value."""


Bench = Annotated[list[Benchmark], NOT_EMPTY]
"""One entry per benchmark of `make bench`, `make bench NAME=big_model` or `make bench NAME=pass_walks`."""


class EgraphFuzz(Document):
    """Models optimised by equality saturation with small limits. From an e-graph of each, explored by every match,
    further graphs are extracted at prices that are drawn, so that not only profitable members of classes are seen.
    The result and all these graphs are compared with the model in ONNX Runtime.
    """

    library: Text
    models: Some
    improved_models: Tally
    """Whose result took some rewrite."""
    extractions: Some
    """At drawn prices."""
    rewritten_extractions: Tally
    """That gave another graph than the model's."""
    realised_percent: Annotated[float, Meta(ge=0, le=100)]
    """Of these extractions, those that a trajectory leads to, choice by choice."""
    compared: Some
    """Graphs with the model that they came from: results, extractions, and ends of trajectories where those differ."""
    informative: Some
    """Comparisons whose outputs could tell a wrong model from a right one."""
    rules: Tally
    """That were used in some e-graph."""
    differences: Tally
    fusions: dict[str, Some]
    """As above."""
    largest_relative_error: Error
    """Of an output, relative to its largest value."""


class Fuzz(Document):
    """Findings of `make fuzz`: random rewrites of the zoo's models, of drawn graphs and of every rule's own source,
    each model compared in ONNX Runtime, as written and as deployed, after five of them. Under `egraph`: drawn
    models and every rule's own source, optimised by an e-graph. Without a rewrite nothing can differ: that baseline
    is 0 differences of 0 rewrites.
    """

    library: Text
    onnxruntime: Text
    shards: Annotated[list[Tally], NOT_EMPTY]
    """Numbers of those that were made by this library in this ONNX Runtime, of sixty."""
    rewrites: Some
    models: Some
    informative_models: Some
    """Whose outputs could tell a wrong model from a right one."""
    rules: Some
    fewest_rewrites_of_a_rule: Tally
    largest_share_percent: float
    """Of one rule, of all rewrites."""
    differences: Tally
    found: list[Text]
    """Each difference: the rules, in order, and the verdict."""
    fusions: dict[str, Some]
    """Models that are right as written and that these optimisers of ONNX Runtime make wrong, or refuse, as
    deployed: no rule is to blame, and `rlflow optimise` does not deliver them.
    """
    largest_relative_error: Error
    """Of an output, relative to its largest value; large where the original as deployed is as far off."""
    rewrites_by_rule: dict[str, Tally]
    """By the rule's id."""
    egraph: EgraphFuzz


class Unjudged(Document):
    """A model that is an exception, and why."""

    model: Text
    reason: Text


class ExportKind(Document):
    """Models exported in one way."""

    models: Some
    """Exports that came about."""
    refused_by_exporter: Tally
    """Architectures that torch does not export so."""
    run_by_onnx_runtime: Some
    """As they are, and accepted by onnx's checker: the trivial baseline, which import and export may not fall below."""
    survived: Tally
    """Import and export, with the same interface and the same outputs bit for bit."""
    with_matches: Tally
    """In which a rule of the library has a place."""
    rewritten: Tally
    """By one random rewrite or more."""
    rewrites: Tally
    """That fired, at most 20 a model."""
    tried: Tally
    """To optimise: one in five, for two seconds and at coarse prices."""
    optimised: Tally
    """Of these, to a model or a reason: valid, of the same interface, with the same outputs."""
    differences: Tally
    """Models that were not imported, exported, or had other outputs, beyond rounding after rewrites."""
    failures: Tally
    """Tracebacks and other results that nobody may see of those to be optimised."""
    exceptions: list[Unjudged]
    """Models that could not be judged, or not bit for bit."""
    rules_fired: RulesFired = field(default_factory=dict)


class ExportKinds(Document):
    """The ways in which models are exported."""

    torchscript_9: ExportKind
    torchscript_11: ExportKind
    torchscript_13: ExportKind
    torchscript_14: ExportKind
    torchscript_16: ExportKind
    torchscript_18: ExportKind
    torchscript_20: ExportKind
    torchscript_17_open: ExportKind
    torch_export_18: ExportKind
    torch_export_20_open: ExportKind
    handmade: ExportKind
    quantised: ExportKind
    half_precision: ExportKind
    fused: ExportKind


class Exports(Document):
    """Results of tests on exported architectures that the zoo does not have.

    Each is imported, exported again, rewritten at random and optimised, and compared in ONNX Runtime with the model as
    it came (`make test MARK=fuzz ONLY=tests/onnx_io`).
    """

    library: Text
    onnxruntime: Text
    """Version."""
    torch: Text
    """Version."""
    transformers: Text
    """Version."""
    kinds: ExportKinds


class ConformanceKind(Document):
    """Models of one kind that onnx brings along."""

    models: Some
    """Of this kind that onnx brings along."""
    run_by_onnx_runtime: Some
    """As they are: the trivial baseline, which import and export may not fall below."""
    survived: Tally
    """Import and export, with the same outputs bit for bit."""
    in_context: Tally
    """Put to random rewrites: each input and output of numbers behind a shift and a scale in float32, light models
    without; what reads and makes strings, sequences and optionals alone is not.
    """
    rewritten: Tally
    """Of these, by one rewrite or more."""
    rewrites: Tally
    """That fired."""
    differences: Tally
    """Models that were not imported, exported, or had other outputs, beyond rounding after rewrites."""
    exceptions: list[Unjudged]
    """Models that survived but were not rewritten, or less often than the others."""
    rules_fired: RulesFired = field(default_factory=dict)


class ConformanceKinds(Document):
    """The kinds of models that the onnx package has."""

    node: ConformanceKind
    simple: ConformanceKind
    pytorch_converted: ConformanceKind = field(name="pytorch-converted")
    pytorch_operator: ConformanceKind = field(name="pytorch-operator")
    light: ConformanceKind
    light_with_drawn_weights: ConformanceKind


class DamagedFiles(Document):
    """Models damaged at random, read by the library."""

    files: Some
    accepted_by_onnx: Tally
    """The trivial baseline: read and checked by the onnx package alone."""
    refused: Tally
    """In one sentence that names the file."""
    without_value: Tally
    """Read, but with a constant expression that has no value, which export says in one sentence."""
    exported: Tally
    """As a model that onnx's checker accepts."""
    equal: Tally
    """Of these, those that ONNX Runtime runs with outputs that tell something, and that compute the same."""
    failures: Tally
    """Crashes, hangs, allocations of 4 GB, tracebacks, long messages, files left behind, other outputs."""
    accepted_and_refused: Tally
    """Accepted by the onnx package and refused here: weights that do not fill their shape, element types that there
    are not, texts that are none; ONNX Runtime opens none of them but for the texts, or it is a failure.
    """
    no_text: Tally
    """Of the refused ones, those with a text that is not UTF-8, which Python cannot read and ONNX Runtime may."""


class Command(Document):
    """Damaged files that one command read."""

    files: Some
    done: Tally
    """With exit code 0: the damage does not matter to it."""
    refused: Tally
    """With exit code 2, in one sentence."""
    said_no: Tally
    """With exit code 1: models differ, a trajectory leads elsewhere, a rule has no certificate."""


class Commands(Document):
    """Files of all kinds that commands read: models, their data, inputs, trajectories, libraries, policies, texts,
    records.
    """

    files: Some
    by_command: Annotated[dict[str, Command], NOT_EMPTY]
    failures: Tally
    """Other exceptions than ours, crashes, hangs, more than one sentence, temporary files named or left behind."""


class Conformance(Document):
    """Results of tests on the onnx package's own models, and on damaged files.

    Its backend tests and light models are imported, exported and rewritten at random, and compared in ONNX Runtime with
    the model as it came; files damaged at random are read by the library and by every command (`make test MARK=fuzz
    ONLY=tests/onnx_io`).
    """

    library: Text
    onnx: Text
    """Version."""
    onnxruntime: Text
    """Version."""
    kinds: ConformanceKinds
    damaged_files: DamagedFiles
    commands: Commands


class Draws(Document):
    """Mutants that one way to draw inputs tells from the original."""

    killed: Count
    """Mutants that were told from their model."""
    killed_percent: Annotated[float, Meta(ge=0, le=100)]
    models_below_95_percent: Count


class AllDraws(Document):
    """The ways to draw inputs."""

    ordinary: Draws
    """Three inputs that a model is for, the third outside of its domains: the baseline, as all inputs were drawn
    before.
    """
    three_draws: Draws
    """Three inputs drawn where models differ, as `rlflow optimise` takes them."""
    equivalence: Draws
    """These, NaN, infinities, and further ones until enough are told apart, as `rlflow equivalence` takes them."""


class MutantKind(Document):
    """Models of one kind, each with faults put into it."""

    models: Cases
    """That have mutants which run."""
    mutants: Cases
    draws: AllDraws


class MutantKinds(Document):
    """The kinds of models."""

    zoo: MutantKind
    node: MutantKind
    """The onnx package's own tests of operators."""


class Mutants(Document):
    """Counts of models with one fault each that drawn inputs tell from their originals.

    `make test MARK=fuzz ONLY=tests/equivalence` writes them.
    """

    onnx: Text
    """Version."""
    onnxruntime: Text
    """Version."""
    kinds: MutantKinds


class RuleLibrary(Document):
    """The shipped library."""

    hash: Hash
    declared: Count
    enumerated: Count


class EnumeratedFamily(Document):
    """One family of rules, from the enumeration to the kept ones."""

    max_operators: Count
    """Of a side."""
    cpu_s: Seconds
    enumerated: Count
    """Graphs."""
    classes: Count
    """Of graphs with one fingerprint."""
    duplicate_pairs: Count
    after_renaming: Count
    after_instance: Count
    """That do not follow from verified rules."""
    verified: Count
    refuted: Count
    kept: Count
    """Rules."""


class Generation(Document):
    """The enumeration of all families."""

    families: Annotated[dict[str, EnumeratedFamily], NOT_EMPTY]
    cpu_s: Seconds
    """Of all families and the declared rules, verification included."""


class Verification(Document):
    """The library, verified again."""

    rules: Cases
    refuted: Count
    false_controls_refused: Cases
    mean_ms: Positive
    """CPU time of one rule."""


class Endurance(Document):
    """Instances of rules, executed as models."""

    instances_asked: Cases
    """Of each rule: shapes, attributes and values."""
    instances_per_rule: Positive
    """Mean of those run in ONNX Runtime."""
    instances: Cases
    rules: Cases
    refuted: Count
    cancelled: Count
    """Instances that differ by more than rounding because their numbers cancel: at other numbers they do not, and
    the target is no less accurate than the source against float64.
    """
    max_relative_error: Error


class RulesOnGraph(Document):
    """The rules that fire on a graph."""

    nodes: Count
    rules: Count
    """That match the graph as it is."""
    locations: Count
    """Where they match."""
    paper_locations: Count
    """Substitutions available in the paper's Table 1, by TASO's rules on its own form of the graph."""
    enumerated_rules_that_fire: Count
    """On a random walk with every declared rule switched off."""


class Recall(Document):
    """The rules of another set."""

    equations: Cases
    false_controls_accepted: Count
    totals: RecallTotals
    totals_of_enumerated_rules_alone: RecallTotals


class RuleStudy(Document):
    """The shipped rules: how they are made, what they endure, where they match, and what becomes of other rule
    sets' equations.
    """

    library: RuleLibrary
    generation: Generation
    verification: Verification
    endurance: Endurance
    graphs: Annotated[dict[str, RulesOnGraph], NOT_EMPTY]
    recall: dict[str, Recall]
    """File of equations -> what becomes of them."""


DOCUMENTS = {
    "bench.json": Bench,
    "big_model.json": Bench,
    "pass_walks.json": Bench,
    "conformance.json": Conformance,
    "exports.json": Exports,
    "fuzz.json": Fuzz,
    "mutants.json": Mutants,
    "rule_study/metrics.json": RuleStudy,
}
"""Types of results files, by the pattern that the end of a file's path matches."""
