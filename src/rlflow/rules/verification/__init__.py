"""Verification of rules: drawn instances are compared exactly over a finite field, and in ONNX Runtime."""
