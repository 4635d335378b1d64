"""The only home of onnxruntime: opening sessions, drawing inputs, comparing outputs and measuring time."""
