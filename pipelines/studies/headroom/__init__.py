"""A table of how much each method saves on each graph, and for what effort."""
