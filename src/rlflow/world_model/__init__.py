"""Learned models of the substitution environment, and the dreams made of them."""

from rlflow.extras import require

require("learn", "rlflow.world_model")
