"""PyTorch building blocks; they know nothing of graph rewriting or environments."""
