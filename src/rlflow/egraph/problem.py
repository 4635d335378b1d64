"""The problem of extraction: for every class of values that is needed, choose one operator application that makes it.

An e-graph holds many graphs at once. Reduced to numbers, it is a list of choices (operator applications) over classes
(of equal values):

    choices = (Choice(2.0, (0,), (1,)),         # class 0 is made from class 1 in 2 ms
               Choice(3.0, (0,), ()),           # or from nothing that has to be made, in 3 ms
               Choice(5.0, (1, 2), ()))         # classes 1 and 2 are the outputs of one Split
    problem = Problem(choices, roots=(0,))
    problem.solved({0: 1}, "by hand").objective_ms              # 3.0

Each chosen application is paid for once, however many of its outputs are read, and however often. The invariant of a
`Solution`: its choices make every root and every operand that they read, and none is needed to make its own operands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum, isfinite
from typing import NamedTuple

from rlflow.errors import GraphError

Class = int


class Choice(NamedTuple):
    """One operator application: its price, the class of each output (None if it is never read), its operands.

    Operands that cost nothing (constants, inputs) may be left out. Of solutions at the same price, those of lower
    `rank` in all are the better ones; it should stay below 100.
    """

    price_ms: float
    outputs: tuple[Class | None, ...]
    operands: tuple[Class, ...]
    rank: int = 0

    @property
    def made(self) -> tuple[Class, ...]:
        """The classes that it makes, each once."""
        return tuple(dict.fromkeys(c for c in self.outputs if c is not None))


@dataclass(frozen=True)
class Solution:
    """The choice for every class that is needed, operands before their readers.

    `bound_ms` is proven to be no more than the price of any solution, and `proven` tells if the objective is as low;
    without a proof the bound may be 0. `method` names who found it, and `limited_by` what ended its search early
    ("nodes", "time"), if anything.
    """

    chosen: Mapping[Class, int]
    objective_ms: float
    bound_ms: float = 0.0
    proven: bool = False
    method: str = ""
    limited_by: str = ""

    @property
    def gap_percent(self) -> float:
        return 100.0 * (self.objective_ms - self.bound_ms) / self.objective_ms if self.objective_ms else 0.0

    @property
    def choices(self) -> tuple[int, ...]:
        """The chosen applications, each once, operands before their readers."""
        return tuple(dict.fromkeys(self.chosen.values()))


@dataclass(frozen=True)
class Problem:
    """Choices, the classes that the model's outputs need, and those that cost nothing. `GraphError` if ill formed."""

    choices: tuple[Choice, ...]
    roots: tuple[Class, ...]
    given: frozenset[Class] = frozenset()

    def __post_init__(self) -> None:
        for number, choice in enumerate(self.choices):
            if not (isfinite(choice.price_ms) and choice.price_ms >= 0):
                raise GraphError(f"choice {number} costs {choice.price_ms} ms: a price must be finite and not negative")
            if not choice.made:
                raise GraphError(f"choice {number} makes nothing")

    @cached_property
    def makers(self) -> Mapping[Class, tuple[int, ...]]:
        """The choices that make each class."""
        makers: dict[Class, list[int]] = {}
        for number, choice in enumerate(self.choices):
            for made in choice.made:
                makers.setdefault(made, []).append(number)
        return {made: tuple(numbers) for made, numbers in makers.items()}

    @cached_property
    def wanted(self) -> tuple[Class, ...]:
        """The roots that have to be made, each once."""
        return tuple(root for root in dict.fromkeys(self.roots) if root not in self.given)

    def reads(self, number: int) -> tuple[Class, ...]:
        """Return the operands of a choice that have to be made, each once."""
        return tuple(c for c in dict.fromkeys(self.choices[number].operands) if c not in self.given)

    def readers(self, choices: Iterable[int]) -> Mapping[Class, Sequence[int]]:
        """Return those of the choices that read each class."""
        readers: dict[Class, list[int]] = {}
        for number in choices:
            for operand in self.reads(number):
                readers.setdefault(operand, []).append(number)
        return readers

    def price_ms(self, choices: Iterable[int]) -> float:
        """Return the price of these applications, each paid for once; rounded once, whatever their order."""
        return fsum(self.choices[number].price_ms for number in sorted(set(choices)))

    def derivable(self, choices: Collection[int]) -> dict[Class, int]:
        """Return the classes that these choices can make from nothing, each with the first that makes it.

        Operands come before their readers, so that a choice that needs its own outcome makes nothing.
        """
        waiting = {number: len(self.reads(number)) for number in choices}
        readers = self.readers(choices)
        ready = [number for number in reversed(sorted(waiting)) if not waiting[number]]
        derived: dict[Class, int] = {}
        while ready:
            number = ready.pop()
            for made in self.choices[number].made:
                if made in derived or made in self.given:
                    continue
                derived[made] = number
                for reader in readers.get(made, ()):
                    waiting[reader] -= 1
                    if not waiting[reader]:
                        ready.append(reader)
        return derived

    def needed(self, chosen: Mapping[Class, int]) -> dict[Class, int]:
        """Return the part of `chosen` that the roots need, operands before their readers.

        Raises `GraphError` if a class that is needed has no choice, another's choice, or depends on itself.
        """
        done: dict[Class, int] = {}
        open_classes: set[Class] = set()
        stack = list(reversed(self.wanted))
        while stack:
            current = stack[-1]
            if current in done or current in open_classes:
                stack.pop()
                if current in open_classes:  # on top again: all its operands are done
                    open_classes.remove(current)
                    done[current] = chosen[current]
                continue
            number = chosen.get(current)
            if number is None or current not in self.choices[number].made:
                raise GraphError(f"class {current} is needed, and nothing that was chosen makes it")
            open_classes.add(current)
            for operand in reversed(self.reads(number)):
                if operand in open_classes:
                    raise GraphError(f"class {operand} would be made from itself")
                if operand not in done:
                    stack.append(operand)
        return done

    def solved(self, chosen: Mapping[Class, int], method: str) -> Solution:
        """Return the solution of these choices, without those that are not needed; `GraphError` if it is none."""
        needed = self.needed(chosen)
        return Solution(needed, self.price_ms(needed.values()), method=method)

    def is_solution(self, chosen: Mapping[Class, int]) -> bool:
        """Tell if the choices make every root and every operand, and nothing from itself."""
        try:
            self.needed(chosen)
        except GraphError:
            return False
        return True
