"""PyTorch building blocks; they know nothing of graph rewriting or environments."""

from rlflow.extras import require

require("learn", "rlflow.nn")
