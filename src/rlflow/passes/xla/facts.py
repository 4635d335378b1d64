"""The facts of an HLO graph: its key, its operations by opcode and what XLA's own cost analysis says.

    facts_of(hlo).key       the same in every process for graphs that differ in names alone

The key is a hash of the graph's text with canonical names. XLA's own text for fingerprints would not do: it leaves out
the content of every constant that is no scalar, and even that of a NaN, so that graphs that compute different things
would have one key. Here constants are written in full.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

from jaxlib import _hlo, _jax  # type: ignore[attr-defined]  # it comes without stubs

from rlflow.passes.backend import Facts, PassCost
from rlflow.passes.xla.compiler import client, module_of

TRIVIAL = frozenset({"parameter", "constant", "tuple", "get-tuple-element"})
"""Opcodes that compute nothing."""


def opcodes() -> tuple[str, ...]:
    """Return every opcode of this XLA that computes something, sorted."""
    spelled = (opcode_name(getattr(_hlo.HloOpcode, name)) for name in dir(_hlo.HloOpcode) if name.startswith("k"))
    return tuple(sorted(set(spelled) - TRIVIAL))


def opcode_name(opcode: _hlo.HloOpcode) -> str:
    """Spell an opcode: kDynamicSlice is dynamic-slice."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in opcode.name[1:]).lstrip("-")


def facts_of(hlo: bytes) -> Facts:
    """Return what is known of a graph."""
    module = module_of(hlo)
    return Facts(key_of(module), counts_of(module), _cost(module))


def key_of(module: _hlo.HloModule) -> str:
    """Return a hash of the graph that does not depend on names, on metadata or on the process."""
    return blake2b(module.to_string(_canonical()).encode(), digest_size=16).hexdigest()


def counts_of(module: _hlo.HloModule) -> tuple[tuple[str, int], ...]:
    """Count the operations of all computations of a module by opcode; called computations count once each."""
    counts = Counter(
        opcode_name(instruction.opcode)
        for computation in module.computations()
        for instruction in computation.instructions()
    )
    return tuple(sorted((opcode, count) for opcode, count in counts.items() if opcode not in TRIVIAL))


def _canonical() -> _hlo.HloPrintOptions:
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.canonicalize_instruction_names = True
    options.canonicalize_computations = True
    options.print_operand_shape = True
    options.print_ids = False
    options.print_percent = False
    options.print_metadata = False
    options.print_program_shape = False
    options.print_backend_config = False
    options.print_control_dependencies = False
    return options


def _cost(module: _hlo.HloModule) -> PassCost:
    cost = _jax.hlo_module_cost_analysis(client(), module)
    return PassCost(cost.get("flops", 0.0), cost.get("transcendentals", 0.0), cost.get("bytes accessed", 0.0))
