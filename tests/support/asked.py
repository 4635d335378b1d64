"""What is asked of `rlflow optimise` where nothing is said."""

from rlflow.optimise.asked import Asked

NOTHING_SAID = Asked(
    method="best",
    setting="deployed",
    runtime="onnxruntime",
    precision="float32",
    tolerance=1e-2,
    cost_model="predicted",
    rules=None,
    disable=(),
    strict=False,
    shape={},
    read=(),
    policy=None,
    trained_on=None,
    passes=None,
    threads=None,
    prove=False,
    default_options=False,
)
