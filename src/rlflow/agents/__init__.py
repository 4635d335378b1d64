"""Agents that choose (rule, location) actions."""

from rlflow.extras import require

require("learn", "rlflow.agents")
