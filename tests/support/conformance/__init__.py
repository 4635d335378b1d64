"""The tests of the ONNX backend, damaged files, and the guarded process in which both are tried."""
