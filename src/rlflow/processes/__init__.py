"""The rewriting of one graph as a process: its states, what can be chosen in each, and what a choice leads to."""
