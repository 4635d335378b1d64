"""Verification of rules: instances drawn by a sampler, compared exactly over a finite field and in ONNX Runtime."""
