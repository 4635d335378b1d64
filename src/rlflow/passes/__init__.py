"""Whole-graph compiler passes, in an order that an agent chooses: ONNX's tools and XLA's own pipeline, pass by pass."""
