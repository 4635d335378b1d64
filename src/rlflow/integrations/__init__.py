"""RLFlow's rules in the tools that others use."""
