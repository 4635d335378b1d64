"""The passes of XLA's CPU pipeline by name: which are actions, which are switched off, and which pipelines nest them.

XLA offers no way to run one pass; it offers a list of passes to switch off. An action therefore switches off every
other pass, and every nested pipeline that would run the pass a second time or on a graph that has got layouts:

    disabled_for(("algsimp",))          everything but algsimp, which then runs in the pipeline "simplification" alone

The order of `ACTIONS` is XLA's own. Two of them are pairs: the simplifiers of gather and scatter demand that
`batched_gather_scatter_normalizer` has run, or else stop the compiler (that of scatter kills the process).
Left out, since they are not safe alone: copy-insertion, and reshape-decomposer, which leaves layouts behind that a
later compile refuses. Left out as they serve the code generator only: layout assignment, fusion, and what follows.

Invariant: a name in `ACTIONS` is one that the pinned compiler runs, `rlflow.passes.xla.probe` makes sure of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

NORMALIZER = "batched_gather_scatter_normalizer"
GATHER, SCATTER = "normalizer+gather_simplifier", "normalizer+scatter_simplifier"

SIMPLIFICATION = "simplification"
AFTER_SCATTER = "post_scatter_expansion_simplification"
NORMALIZATION = "hlo normalization"

ACTIONS = (
    "flatten-call-graph",
    "dce",
    NORMALIZER,
    "result_caster",
    "dot_decomposer",
    "operand_upcaster",
    "rng-expander",
    "rng-bit-generator-expander",
    "zero_sized_hlo_elimination",
    "dynamic-index-splitter",
    "conditional-to-select",
    "map-inline",
    "topk-decomposer",
    "comparison-expander",
    "call-inliner",
    "batch-dot-simplification",
    "convolution-group-converter",
    "batchnorm_expander",
    "logistic-expander",
    "conditional-canonicalizer",
    "dynamic-dimension-simplifier",
    "reduce-window-rewriter",
    "algsimp",
    "simplify-sorts",
    "gather_expander",
    GATHER,
    "tree_reduction_rewriter",
    "while-loop-invariant-code-motion",
    "tuple-simplifier",
    "while-loop-constant-sinking",
    "simplify-while-loops",
    "reshape-mover",
    "constant_folding",
    "simplify-conditional",
    "select_and_scatter_expander",
    "scatter_expander",
    SCATTER,
    "gemv-rewriter",
    "bitcast_dtypes_expander",
    "transpose-folding",
    "cse",
    "reduce-decomposer",
    "broadcast_canonicalizer",
    "literal-canonicalizer",
    "shape-canonicalizer",
)
"""The passes that an agent chooses from."""

SIMPLIFIERS = (
    "dce",
    "zero_sized_hlo_elimination",
    "call-inliner",
    "algsimp",
    "tuple-simplifier",
    "constant_folding",
    "cse",
    "reshape-mover",
    "simplify-while-loops",
    "simplify-conditional",
    "simplify-sorts",
    "transpose-folding",
)
"""The passes that make a graph smaller as a rule, none of which spells an operation out in others."""

_MEMBERS: Mapping[str, tuple[str, ...]] = {
    GATHER: (NORMALIZER, "gather_simplifier"),
    SCATTER: (NORMALIZER, "scatter_simplifier"),
}
"""What the compiler calls the passes of an action that is a pair."""

_NESTED: Mapping[str, str] = dict.fromkeys(("reduce-decomposer", "broadcast_canonicalizer"), NORMALIZATION)
"""Actions of a nested pipeline that is switched off for all others."""

_NARROW_TYPES = (
    *("bf16", "f4e2m1fn", "f8e3m4", "f8e4m3", "f8e4m3b11fnuz", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz"),
    *("f8e8m0fnu", "s4", "u4"),
)
_NEVER = (
    "all-reduce-promotion",
    "all_to_all_decomposer",
    "associative-scan-rewriter",
    "async-collective-replacer",
    "change-op-data-type",
    "cholesky_expander",
    "control-dep-rewriter",
    "convolution-canonicalization",
    "copy-insertion",
    "cpu-all-reduce-combiner",
    "cpu-parallel-task-assigner",
    "cse_barrier_expander",
    "dot-library-rewriter",
    "dynamic_padder",
    "eigh_expander",
    *(f"float-normalization-{kind}" for kind in _NARROW_TYPES),
    "fusion",
    "fusion-wrapper",
    "layout-assignment",
    "optimize_input_output_buffer_alias",
    "propagate-call-metadata",
    "qr_expander",
    "reduce-window-resizer",
    "reshape-decomposer",
    "scan_expander",
    "sharding-remover",
    "shardy-xla",
    "small-while-loop-hoisting",
    "stochastic_convert_decomposer",
    "strip-memory-placement-annotations",
    "sub-byte-size-setter",
    "topk-rewriter",
    "triangular_solve_expander",
    "while-loop-trip-count-annotator",
)
"""Passes of the pipeline that are no actions; they stay off."""

_LATE_PIPELINES = ("simplification after layout assignment", "after layout assignment", "dot-library-passes")
"""Nested pipelines that work on graphs with layouts, or for one library of kernels; they stay off."""


def disabled_for(actions: Collection[str], *, pipelines: Collection[str] = ()) -> str:
    """Return the compiler's list of what to switch off, so that these actions alone run.

    `pipelines` are nested ones that stay on beside those that the actions need.
    """
    running = {member for action in actions for member in members(action)}
    nested = {*pipelines, *(_NESTED[action] for action in actions if action in _NESTED)}
    known = {member for action in ACTIONS for member in members(action)}
    off = [*sorted(known - running), *_NEVER, *_LATE_PIPELINES]
    off += [name for name in (AFTER_SCATTER, NORMALIZATION) if name not in nested]
    return ",".join(off)


def members(action: str) -> tuple[str, ...]:
    """Return what the compiler calls the passes of an action, in the order in which they run."""
    return _MEMBERS.get(action, (action,))
