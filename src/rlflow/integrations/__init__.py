"""RLFlow in the tools that others use: its rules, and all of it."""
