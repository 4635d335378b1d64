"""Shapes in ONNX models: inference, symbolic dimensions, constant folding of computed shapes, and what loops carry."""
