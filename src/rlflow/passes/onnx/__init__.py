"""The pass-ordering gym's ONNX side: the passes of five libraries over one model, in any order."""
