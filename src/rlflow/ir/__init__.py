"""The intermediate representation: a model as a graph while it is optimised, with its nodes and types."""

from rlflow.ir.graph import Graph as Graph
from rlflow.ir.graph import Header as Header
from rlflow.ir.graph import make_graph as make_graph
from rlflow.ir.node import INPUT as INPUT
from rlflow.ir.node import WEIGHT as WEIGHT
from rlflow.ir.node import Attributes as Attributes
from rlflow.ir.node import Node as Node
from rlflow.ir.node import Ref as Ref
from rlflow.ir.structural_hash import structural_hash as structural_hash
from rlflow.ir.tensor_type import TensorType as TensorType
from rlflow.ir.validate import validate as validate
