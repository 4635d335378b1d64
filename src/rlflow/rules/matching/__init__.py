"""Matching and rewriting: where the rules of a library apply in a graph, and the graph that applying one gives."""
