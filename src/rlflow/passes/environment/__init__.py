"""The choice of passes as a Gymnasium environment: `rlflow/PassOrdering-v0`, its rewards and their shaping."""
