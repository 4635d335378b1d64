"""Notes on parameters become what the library holds and the verifier draws."""

from random import Random
from typing import Annotated

import pytest

from rlflow.errors import RuleError
from rlflow.rules.dsl import (
    Attribute,
    Attributes,
    AxisOf,
    Choice,
    GroupsOf,
    Integers,
    Partition,
    PermutationOf,
    Rewrite,
    Shape,
    ShapeOf,
    Sizes,
    Tensor,
    Together,
    Uniform,
    attribute,
    rule,
    tensor,
)
from rlflow.rules.dsl.operators import Clip, Mul, Split, Transpose
from rlflow.rules.verification.sampler import Sampler

Permutation = Annotated[Attribute, PermutationOf("x")]


def test_domains_are_written_as_the_verifier_draws_them() -> None:
    bounds = Together(min=("lo", Choice(0.0, -1.0)), max=("hi", Uniform()))

    @rule("domains", family="test")
    def every_domain(x: Tensor, y: Tensor, b: Annotated[Attributes, bounds], p: Permutation) -> Rewrite:
        return Rewrite(Clip(Transpose(Mul(x, y), perm=p), **b), Transpose(Mul(x, y), perm=p))

    assert every_domain.rules[0].attributes == {
        "?lo": ["choice", 0.0, -1.0],
        "?hi": ["uniform"],
        "?p": ["permutation", "x"],
    }
    assert [domain.to_json() for domain in (AxisOf("x"), ShapeOf("x"), GroupsOf("x", "f"), Integers(0, 2, 4))] == [
        ["axis", "x"],
        ["reshape", "x"],
        ["groups", "x", "f"],
        ["integers", 0, 2, 4],
    ]
    assert Partition("x", "k", 2).to_json() == ["partition", "x", "?k", 2]
    assert Sizes(-1, ("x", "y")).to_json() == ["sizes", -1, "x", "y"]
    with pytest.raises(RuleError, match="of one type"):
        Choice(1, 0.5)


def test_shapes_are_written_in_a_line() -> None:
    assert Shape("...b 4 k").parts() == ("...b", 4, "k")
    assert Shape("").parts() == ()
    with pytest.raises(RuleError, match="only its first part"):
        Shape("k ...b").parts()


def test_a_choice_may_be_computed_of_what_is_declared_before() -> None:
    """Not vacuous: the drawn sizes add up to the length of the axis that was drawn."""
    length = tensor("x").dim(attribute("k", "int"))

    @rule("first", family="test")
    def first(
        x: Tensor,
        k: Annotated[Attribute, AxisOf("x")],
        s: Annotated[Attribute, Choice([1, length - 1], [length - 1, 1])],
    ) -> Rewrite:
        return Rewrite(Split(x, axis=k, split=s)[0], x, where=[s.length == 2])

    random, sampler = Random(0), Sampler(first.rules[0])
    drawn = [sampler.draw(random) for _ in range(20)]
    for instance in drawn:
        axis, sizes = instance.attributes["?k"], instance.attributes["?s"]
        assert sum(sizes) == instance.shape("x")[axis]  # type: ignore[arg-type, index]
    assert len({instance.attributes["?s"] for instance in drawn}) > 3
