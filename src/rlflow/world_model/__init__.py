"""V and M: the learned model of the substitution environment, and the dream made of it."""

from rlflow.extras import require

require("learn", "rlflow.world_model")
