"""A fragment without the views at its end.

ONNX Runtime puts views around what it fuses: a MatMul of rank 3 with a bias becomes Reshape, Gemm, Reshape. Inside a
model they only relabel memory. At the end of a fragment the last one would have to copy its operand into the fragment's
output, which takes a tenth of the time of a Gemm of BERT-Base, and which no model pays.
"""

from onnx import ModelProto

from rlflow.ops import registry

_VIEWS = registry.types_having(lambda traits: traits.view)


def without_last_views(model: ModelProto) -> tuple[ModelProto, int]:
    """The model with the operands of its last views as outputs, of unknown shape, and how many views that leaves out.

    A view that another node reads stays, and so does a view of an input or of a weight: it is all there is to time.
    """
    cut = ModelProto()
    cut.CopyFrom(model)
    left_out = 0
    while _leave_out_one(cut):
        left_out += 1
    return cut, left_out


def _leave_out_one(model: ModelProto) -> bool:
    graph = model.graph
    read = {name for node in graph.node for name in node.input}
    made = {name for node in graph.node for name in node.output}
    outputs = {output.name: output for output in graph.output}
    for index, node in enumerate(graph.node):
        name, operand = node.output[0], next(iter(node.input), "")
        if node.op_type not in _VIEWS or name not in outputs or name in read or operand not in made:
            continue
        output = outputs[name]
        if operand in outputs:
            graph.output.remove(output)
        else:
            output.name = operand
            output.type.tensor_type.ClearField("shape")
        del graph.node[index]
        return True
    return False
