"""Additive masks, and the operators that pass them: 0 where an element is seen, a very low number where it is hidden.

Exporters hide what may not be attended to by -1e4, -1e9, the lowest float or minus infinity, added to the scores before
a softmax. In Softmax(Transpose(scores + mask)) the mask passes the sum and the transpose, and hides in the softmax. Of
what was multiplied or went through a function, a mask is none any more.
"""

from __future__ import annotations

from collections.abc import Mapping

_MOVING = ("Concat", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "Split", "Squeeze", "Transpose")
_FIRST, _ALL = slice(1), slice(None)

PASSED: Mapping[str, slice] = {
    **dict.fromkeys((*_MOVING, "Unsqueeze"), _FIRST),
    **dict.fromkeys(("Add", "Sub", "Sum", "Concat"), _ALL),
}
"""The operands of each operator whose masks are in its result."""

MADE: Mapping[str, slice] = {**PASSED, "Mul": _ALL}
"""The same, and the product by which exporters make a mask of zeros and ones, as in (1 - seen) * -1e9."""

HIDDEN: Mapping[str, slice] = {**dict.fromkeys(("Softmax", "Exp"), _FIRST), "Attention": slice(3, 4)}
"""The operands of each operator by whose masks elements are hidden."""
