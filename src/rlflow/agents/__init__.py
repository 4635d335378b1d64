"""Agents that choose the next rewrite."""

from rlflow.extras import require

require("learn", "rlflow.agents")
