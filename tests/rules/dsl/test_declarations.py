"""A rule is what its function says; what is wrong is told with file and line when the file is imported."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlflow.errors import RuleError
from rlflow.rules.dsl import (
    CONSTANT,
    LITERAL,
    Attribute,
    PermutationOf,
    Rewrite,
    Shape,
    Tensor,
    declarations,
    rule,
    rules,
)
from rlflow.rules.dsl.files import read_declarations
from rlflow.rules.dsl.operators import Exp, Mul, OperatorConstructor, Relu, Tanh, Transpose
from rlflow.rules.rule import canonical, rule_from_json

HEADER = """\
from typing import Annotated

from rlflow.rules.dsl import *
from rlflow.rules.dsl.operators import Add, Concat, Relu, Split, Transpose

Permutation = Annotated[Attribute, PermutationOf("x")]

"""
FIRST = len(HEADER.splitlines()) + 1

MISTAKES = {
    "the target uses another tensor": (
        """
        @rule("wrong")
        def wrong(x: Tensor, y: Tensor) -> Rewrite:
            return Rewrite(Relu(x), Relu(y))
        """,
        0,
        "'wrong': the tensor 'y' is not bound: it must occur in the source",
    ),
    "a condition uses another tensor": (
        """
        @rule("wrong")
        def wrong(x: Tensor) -> Rewrite:
            return Rewrite(Relu(Relu(x)), Relu(x), where=[tensor("q").rank == 1])
        """,
        0,
        "the tensor 'q' is not bound",
    ),
    "an attribute that the source does not have": (
        """
        @rule("wrong")
        def wrong(x: Tensor, p: Permutation) -> Rewrite:
            return Rewrite(Relu(x), Transpose(x, perm=p))
        """,
        0,
        "the attribute 'p' is not bound",
    ),
    "an unknown attribute, on its own line": (
        """
        @rule("wrong")
        def wrong(x: Tensor, p: Permutation) -> Rewrite:
            inner = Relu(x)
            return Rewrite(
                Transpose(inner, perms=p),
                x,
            )
        """,
        4,
        "Transpose has no attribute 'perms'",
    ),
    "an idle tensor": (
        """
        @rule("wrong")
        def wrong(x: Tensor, y: Tensor) -> Rewrite:
            return Rewrite(Relu(Relu(x)), Relu(x))
        """,
        0,
        "the parameter 'y' is idle",
    ),
    "an idle attribute": (
        """
        @rule("wrong")
        def wrong(x: Tensor, p: Permutation) -> Rewrite:
            return Rewrite(Relu(Relu(x)), Relu(x))
        """,
        0,
        "the parameter 'p' is idle",
    ),
    "no annotation": (
        """
        @rule("wrong")
        def wrong(x) -> Rewrite:
            return Rewrite(Relu(Relu(x)), Relu(x))
        """,
        0,
        "the parameter 'x' has no annotation",
    ),
    "an attribute without a domain": (
        """
        @rule("wrong")
        def wrong(x: Tensor, p: Attribute) -> Rewrite:
            return Rewrite(Transpose(x, perm=p), x)
        """,
        0,
        "the parameter 'p' needs one note",
    ),
    "another annotation": (
        """
        @rule("wrong")
        def wrong(x: int) -> Rewrite:
            return Rewrite(Relu(x), x)
        """,
        0,
        "is no Tensor, Attribute or Attributes",
    ),
    "a shape with rows of axes behind": (
        """
        @rule("wrong")
        def wrong(x: Annotated[Tensor, Shape("n ...b")]) -> Rewrite:
            return Rewrite(Relu(Relu(x)), Relu(x))
        """,
        0,
        "only its first part",
    ),
    "a pair": (
        """
        @rule("wrong")
        def wrong(x: Tensor) -> Rewrite:
            return Relu(Relu(x)), Relu(x)
        """,
        0,
        "return Rewrite",
    ),
    "conditions that Python decides": (
        """
        @rule("wrong")
        def wrong(x: Tensor) -> Rewrite:
            return Rewrite(Relu(Relu(x)), Relu(x), where=[x.rank == 1 and x.rank == 2])
        """,
        2,
        "combine conditions by &",
    ),
    "a condition without a list": (
        """
        @rule("wrong")
        def wrong(x: Tensor) -> Rewrite:
            return Rewrite(Relu(Relu(x)), Relu(x), where=x.rank == 1)
        """,
        2,
        "given as a list",
    ),
    "a bare variable as the source": (
        """
        @rule("wrong")
        def wrong(x: Tensor) -> Rewrite:
            return Rewrite(x, Relu(x))
        """,
        0,
        "would match everything",
    ),
    "a domain of a tensor that is none": (
        """
        @rule("wrong")
        def wrong(x: Tensor, p: Annotated[Attribute, PermutationOf("y")]) -> Rewrite:
            return Rewrite(Transpose(x, perm=p), x)
        """,
        0,
        "the tensor 'y' is not bound",
    ),
    "a name that is taken": (
        """
        @rule("wrong")
        def right(x: Tensor) -> Rewrite:
            return Rewrite(Relu(Relu(x)), Relu(x))

        @rule("wrong")
        def wrong(x: Tensor) -> Rewrite:
            return Rewrite(Relu(Relu(x)), Relu(x))
        """,
        4,
        "the name 'wrong' is taken by",
    ),
    "a control of no rule": (
        """
        @false_control("wrong", of="nothing")
        def wrong(x: Tensor) -> Rewrite:
            return Rewrite(Relu(x), x)
        """,
        0,
        "declares no rule 'nothing' above",
    ),
    "an operator that there is not": (
        """
        from rlflow.rules.dsl.operators import Rellu
        """,
        0,
        "no operator Rellu: did you mean Relu",
    ),
    "any other error": (
        """
        @rule("wrong")
        def wrong(x: Tensor) -> Rewrite:
            return Rewrite(Relu(x), y)
        """,
        2,
        "NameError: name 'y' is not defined",
    ),
    "an argument that is no parameter": (
        """
        @rules({"wrong": {"y": Tensor}})
        def wrong(x: Tensor) -> Rewrite:
            return Rewrite(Relu(Relu(x)), Relu(x))
        """,
        0,
        "a case gives 'y', which is no parameter",
    ),
    "a law with a name too few": (
        """
        @law("wrong", over=({"f": Relu}, {"f": Relu}))
        def wrong(f: object, x: Tensor) -> Rewrite:
            return Rewrite(Relu(Relu(x)), Relu(x))
        """,
        0,
        "a law over 2 members needs as many names",
    ),
    "a parameter that is idle for all members": (
        """
        @law("wrong", "too", over=({"f": Relu}, {"f": Transpose}))
        def wrong(f: object, x: Tensor, y: Tensor) -> Rewrite:
            return Rewrite(Relu(Relu(x)), Relu(x))
        """,
        0,
        "the parameter 'y' is idle",
    ),
    "no Python": (
        """
        @rule("wrong"
        def wrong(x: Tensor) -> Rewrite:
        """,
        0,
        "was never closed",
    ),
}


@pytest.mark.parametrize(("text", "line", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, line: int, told: str) -> None:
    path = tmp_path / "own.py"
    path.write_text(HEADER + dedent(text).lstrip("\n"))
    with pytest.raises(RuleError) as error:
        read_declarations(path)
    assert str(error.value).startswith(f"{path}:{FIRST + line}: ")
    assert told in str(error.value)


Any = Annotated[Tensor, Shape("...b 4 k")]
Permutation = Annotated[Attribute, PermutationOf("x")]


def test_a_rule_says_what_its_function_says() -> None:
    @rule("past", "back", family="test", opset=13)
    def past(
        x: Any, s: Annotated[Tensor, Shape(""), CONSTANT], e: Annotated[Tensor, LITERAL], p: Permutation
    ) -> Rewrite:
        turned = Transpose(Mul(x, s), perm=p)
        return Rewrite(
            Mul(turned, e), Mul(Transpose(x, perm=p), Mul(s, e)), where=[x.rank > 1], profitable_if=[x.dim(0) >= 9]
        )

    turned = ["Transpose", {"perm": "?p"}, ["Mul", "x", "s"]]
    by_hand = rule_from_json(
        "past",
        "test",
        [["Mul", turned, "e"]],
        [["Mul", ["Transpose", {"perm": "?p"}, "x"], ["Mul", "s", "e"]]],
        {
            "x": {"shape": ["...b", 4, "k"]},
            "s": {"shape": [], "constant": True},
            "e": {"literal": True},
        },
        attributes={"?p": ["permutation", "x"]},
        where=[["<", 1, ["rank", "x"]]],
        profitable_if=[["<=", 9, ["dim", "x", 0]]],
        opset=13,
    )
    assert past.rules[0] == by_hand
    assert past.rules[1] == by_hand.reversed("back")
    assert past.place.line == _line_of('@rule("past"')
    assert Path(past.place.path) == Path(__file__)


def _line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if line.strip().startswith(text))


def test_one_definition_holds_for_several_operators() -> None:
    @rules({("exp-once", "exp-twice"): Exp, "tanh-once": Tanh}, family="test")
    def once(f: OperatorConstructor, x: Tensor) -> Rewrite:
        return Rewrite(Relu(f(Relu(x))), f(Relu(x)))

    assert [r.name for r in once.rules] == ["exp-once", "exp-twice", "tanh-once"]
    assert [r.equation() for r in once.rules] == [
        "Relu(Exp(Relu(x))) => Exp(Relu(x))",
        "Exp(Relu(x)) => Relu(Exp(Relu(x)))",
        "Relu(Tanh(Relu(x))) => Tanh(Relu(x))",
    ]


@dataclass(frozen=True)
class Turning:
    """A transpose of an operand: a group of parameters."""

    p: Permutation

    def __call__(self, x: Tensor) -> Tensor:
        return Transpose(x, perm=self.p)


@dataclass(frozen=True)
class Scaling:
    """A product with a scalar, which brings a tensor of its own."""

    s: Annotated[Tensor, Shape("")]

    def __call__(self, x: Tensor) -> Tensor:
        return Mul(x, self.s)


CHANGES = ({"change": Turning, "x": Any}, {"change": Scaling})
LAWS = """
from rlflow.rules.dsl import Rewrite, Tensor, law, laws, rule
from rlflow.rules.dsl.operators import Exp, Relu, Tanh

@laws({("turned-exp", "scaled-exp"): Exp, ("turned-tanh", "scaled-tanh"): Tanh}, over=CHANGES)
def once(f, x: Tensor, change) -> Rewrite:
    return Rewrite(f(change(x)), change(f(x)))

@law("turned-relu", "scaled-relu", over=CHANGES)
def relu(x: Tensor, change) -> Rewrite:
    return Rewrite(Relu(change(x)), change(Relu(x)))

@rule("relu-once")
def between(x: Tensor) -> Rewrite:
    return Rewrite(Relu(Relu(x)), Relu(x))

@law("turned-twice", "scaled-twice", over=CHANGES)
def twice(x: Tensor, change) -> Rewrite:
    return Rewrite(change(change(x)), change(x))
"""


def test_a_law_is_a_rule_for_each_member_and_laws_in_a_row_are_ordered_by_member() -> None:
    """Members differ in what they bind, and in a type that they give: not vacuous, one has a shape and one has none."""
    namespace: dict[str, object] = {"CHANGES": CHANGES}
    exec(compile(LAWS, "<declared>", "exec"), namespace)
    made = [rule for declaration in declarations(namespace) for rule in declaration.rules]
    assert [r.name for r in made] == [
        *("turned-exp", "turned-tanh", "turned-relu", "scaled-exp", "scaled-tanh", "scaled-relu"),
        *("relu-once", "turned-twice", "scaled-twice"),
    ]
    turned, scaled = made[0], made[3]
    assert turned.equation() == "Exp(Transpose[perm=p](x)) => Transpose[perm=p](Exp(x))"
    assert scaled.equation() == "Exp(Mul(x, s)) => Mul(Exp(x), s)"
    assert (turned.attributes, scaled.attributes) == ({"?p": ["permutation", "x"]}, {})
    assert (turned.spec("x").shape, scaled.spec("x").shape) == (("...b", 4, "k"), None)
    assert scaled.spec("s").shape == ()


@given(names=st.permutations(["x", "y", "z", "w"]), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_names_of_variables_change_nothing_that_a_rule_says(names: list[str], sizes: list[int]) -> None:
    """The id is made of the canonical form: declared under other names, the rule is the same one."""

    def declared(name: str, symbol: str) -> object:
        text = f"""
from typing import Annotated
from rlflow.rules.dsl import Attribute, Rewrite, Shape, ShapeOf, Tensor, rule
from rlflow.rules.dsl.operators import Relu, Reshape
@rule("r")
def r({name}: Annotated[Tensor, Shape("{" ".join(map(str, sizes))}")],
      {symbol}: Annotated[Attribute, ShapeOf("{name}")]) -> Rewrite:
    return Rewrite(Reshape(Relu({name}), shape={symbol}), Relu(Reshape({name}, shape={symbol})))
"""
        namespace: dict[str, object] = {}
        exec(compile(text, "<declared>", "exec"), namespace)
        return canonical(declarations(namespace)[0].rules[0])

    assert declared(names[0], names[1]) == declared(names[2], names[3])
