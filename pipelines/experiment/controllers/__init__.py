"""Controllers, trained in the dream and acting on the real graph: one module for each formulation."""
