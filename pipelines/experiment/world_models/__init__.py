"""World models fitted on rollouts, and how far the dream can be trusted: one module for each formulation."""
