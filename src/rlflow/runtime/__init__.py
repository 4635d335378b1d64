"""Models on ONNX Runtime: opening sessions, drawing inputs, running in isolated processes and measuring time."""
