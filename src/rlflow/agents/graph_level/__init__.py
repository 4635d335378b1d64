"""The paper's controller: a policy over (rule, location) that sees a graph through V and M."""

from rlflow.extras import require

require("learn", "rlflow.agents.graph_level")
