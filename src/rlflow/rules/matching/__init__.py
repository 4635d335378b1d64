"""Matching and rewriting: the places in a graph at which rules apply, and the graph after applying one."""
