"""Every error that a user can meet. A message says what went wrong, where, and what to do about it."""


class RLFlowError(Exception):
    """Base of all errors raised on purpose; the command line prints its message and exits with `exit_code`."""

    exit_code = 1


class InputError(RLFlowError):
    """Input that cannot be used: a missing file, an unknown name, an impossible budget."""

    exit_code = 2


class ModelFormatError(InputError):
    """A file that is not a valid ONNX model."""


class GraphError(RLFlowError):
    """A graph that breaks an invariant of the intermediate representation."""


class TypeInferenceError(GraphError):
    """Operands that an operator does not admit."""


class RuleError(RLFlowError):
    """A substitution rule that cannot be read, matched or applied."""


class CertificateError(RuleError):
    """A rule whose certificate is missing, broken or belongs to another rule."""


class EquivalenceError(RLFlowError):
    """An optimised model that does not compute what the original computes."""


class ReplayError(RLFlowError):
    """A trajectory that does not lead to the graphs that it records."""


class PriceError(RLFlowError):
    """A graph that cannot be priced, or a price list of another machine."""
