"""An equation at every shape: the true hold, the false are refuted with the shapes that show it."""

import numpy as np
import pytest
from support.known_rules import knowing

from rlflow.rules.library import Library
from rlflow.synthesis.prune import KnownRules
from rlflow.synthesis.taso.equations import parse_line
from rlflow.synthesis.taso.recall import (
    FALSE_CONTROLS,
    RecallConfig,
    draw_cases,
    holds,
    judge,
)


@pytest.fixture(scope="module")
def known(library: Library) -> KnownRules:
    return knowing(*library.rules)


TRUE = [
    "matmul(a,Imatmul) == a",
    "matmul(Imatmul,a) == a",
    "transpose(transpose(a)) == a",
    "smul(ewadd(a,b),s) == ewadd(smul(a,s),smul(b,s))",
    "conv2d(1,1,0,0,x,Iconv(3,3)) == x",
    "conv2d(1,1,0,0,x,Iconv(2,2)) == x",
    "poolavg(3,3,1,1,0,x) == conv2d(1,1,0,0,x,Cpool(3,3))",
    "poolavg(2,3,2,1,1,x) == conv2d(2,1,1,0,x,Cpool(2,3))",
    "conv2d(1,1,0,0,x,w) == conv2d(1,1,0,0,x,enlarge(4,5,w))",
    "conv2d(1,1,0,2,x,w) == relu(conv2d(1,1,0,0,x,w))",
    "a == split_0(1,concat(1,a,b)) ; b == split_1(1,concat(1,a,b))",
    "a == concat(0,split_0(0,a),split_1(0,a))",
    "relu(a) == split_0(0,relu(concat(0,a,b)))",
    "matmul(x,a) == split_0(1,matmul(x,concat(1,a,b)))",
    "conv2d(2,2,1,0,y,w) == split_1(0,conv2d(2,2,1,0,concat(0,x,y),w))",
]
FALSE = [
    *FALSE_CONTROLS,
    "ewadd(Imatmul,Imatmul) == Imatmul",
    "ewmul(a,Imatmul) == a",
    "matmul(a,concat(1,b,Imatmul)) == concat(1,a,matmul(a,b))",
    "enlarge(5,5,Cpool(3,3)) == Cpool(5,5)",
    "conv2d(1,1,0,0,x,ewadd(w,Iconv(3,3))) == conv2d(1,1,0,0,x,w)",
    # a sign of single numbers agrees at every other point
    "ewadd(s,smul(s,relu(t))) == ewadd(s,smul(t,s))",
    "smul(relu(Imatmul),s) == relu(smul(Imatmul,s))",
    "matmul(a,Imatmul) == relu(a)",
    "a == split_1(1,concat(1,a,b))",
    "poolavg(3,3,1,1,0,x) == poolmax(3,3,1,1,0,x)",
    "conv2d(1,1,0,0,x,w) == conv2d(1,1,0,0,x,relu(w))",
    # the published library has this one (99): the groups of a convolution make it false
    "concat(1,conv2d(1,1,0,0,x,v),conv2d(1,1,0,0,y,w)) == conv2d(1,1,0,0,concat(1,x,y),concat(0,v,w))",
]


@pytest.mark.parametrize("text", TRUE)
def test_what_is_true_holds_at_every_shape(text):
    rng = np.random.default_rng(0)
    cases = draw_cases(parse_line(text), rng, 12, 4000)
    assert len(cases) >= 4
    assert all(holds(case, rng, 3) for case in cases)


@pytest.mark.parametrize("text", FALSE)
def test_what_is_false_is_refused_with_the_shapes_that_show_it(text, known: KnownRules):
    found = judge(parse_line(text), known, RecallConfig())
    assert found.outcome == "refuted"
    assert "the sides differ at" in found.counter_example


@pytest.mark.parametrize(
    "text",
    [
        "ewadd(conv2d(1,1,0,0,x,v),conv2d(1,1,0,0,y,w)) == conv2d(1,1,0,0,concat(1,x,y),concat(1,v,w))",
        "concat(1,conv2d(1,1,0,0,x,v),conv2d(1,1,0,0,x,w)) == conv2d(1,1,0,0,x,concat(0,v,w))",
    ],
)
def test_a_condition_that_saves_an_equation_is_stated(text, known: KnownRules):
    found = judge(parse_line(text), known, RecallConfig())
    assert (found.outcome, found.condition) == ("conditional", "every convolution has one group")
    assert found.counter_example


def test_what_no_shape_admits_is_not_found(known: KnownRules):
    found = judge(parse_line("matmul(a,conv2d(1,1,0,0,x,w)) == a"), known, RecallConfig(attempts=200))
    assert found.outcome == "not_found"
    assert "no well-typed shapes" in found.counter_example
