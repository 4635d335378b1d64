"""RLFlow's rules in onnxscript's rewriter, on a model that PyTorch exports.

`torch.onnx.export(..., dynamo=True)` returns a model that onnxscript rewrites as it is; any other one comes by
`onnx_ir.load`, or is given to `rewrite` as a ModelProto.
"""

import torch
from onnx_ir.passes.common import ShapeInferencePass
from onnxscript.rewriter import rewrite

from rlflow.integrations.onnxscript import rules


class Twice(torch.nn.Module):
    """Two linear maps in a row, and a transposition there and back."""

    def __init__(self) -> None:
        super().__init__()
        self.maps = torch.nn.Sequential(torch.nn.Linear(64, 512, bias=False), torch.nn.Linear(512, 64, bias=False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.maps(x).transpose(1, 2).transpose(1, 2))


if __name__ == "__main__":
    program = torch.onnx.export(Twice().eval(), (torch.ones(4, 16, 64),), dynamo=True, optimize=True, verbose=False)
    model = ShapeInferencePass()(program.model).model
    before = len(model.graph)
    rewrite(model, pattern_rewrite_rules=rules())
    print(f"{before} operators, then {len(model.graph)}: {', '.join(node.op_type for node in model.graph)}")
    for node in model.graph:
        print(node.op_type, "by", node.metadata_props.get("pkg.onnxscript.rewriter.rule_name", "PyTorch"))
