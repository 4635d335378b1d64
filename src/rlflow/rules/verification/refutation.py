"""The verifier's refusal of a rule."""

from __future__ import annotations

from dataclasses import dataclass

from rlflow.rules.expression import Expression, describe
from rlflow.rules.plan import Instance


@dataclass(frozen=True)
class Refutation:
    """The reason why a rule is not accepted, with a counter-example that can be evaluated again.

    `remedies` are conditions of which each excludes it.
    """

    reason: str
    instance: Instance | None
    remedies: tuple[Expression, ...] = ()

    def __str__(self) -> str:
        if self.instance is None:
            return self.reason
        shapes = {name: list(tensor_type.shape or ()) for name, tensor_type in self.instance.types.items()}
        attributes = f", attributes {dict(self.instance.attributes)}" if self.instance.attributes else ""
        remedy = f" (excluded by {' or '.join(map(describe, self.remedies))})" if self.remedies else ""
        return f"{self.reason} at shapes {shapes}{attributes}{remedy}"
