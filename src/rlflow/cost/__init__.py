"""Costs of graphs: counted from their nodes, or measured on the runtime that will run them."""
