"""Timing on ONNX Runtime: fragments of a graph for prices, whole models against each other, and their statistics."""
