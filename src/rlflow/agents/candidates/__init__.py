"""X-RLflow's agent: it sees the current graph and its candidates, and learns on the graph itself."""

from rlflow.extras import require

require("learn", "rlflow.agents.candidates")
