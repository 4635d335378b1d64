"""Another rule set's equations: the true ones hold, the false ones are refuted, and derivations are no guesses."""

import pytest
from support.known_rules import knowing

from rlflow.rules.declared import convolution, padding
from rlflow.rules.declared.catalogue import rules_of
from rlflow.rules.library import Library
from rlflow.rules.verification.verify import VerificationConfig, certified
from rlflow.synthesis.prune import KnownRules
from rlflow.synthesis.taso.equations import parse_line
from rlflow.synthesis.taso.recall import (
    RecallConfig,
    false_controls_accepted,
    judge,
    recall,
    totals,
)

CONFIG = RecallConfig(shapes=12, attempts=4000)


@pytest.fixture(scope="module")
def known(library: Library) -> KnownRules:
    return knowing(*library.rules)


OF_JOINTS = [
    "relu(concat(1,a,b)) == concat(1,relu(a),relu(b))",
    "ewadd(concat(0,a,b),concat(0,c,d)) == concat(0,ewadd(c,a),ewadd(d,b))",
    "concat(0,matmul(a,c),matmul(b,c)) == matmul(concat(0,a,b),c)",
    "matmul(concat(1,a,b),concat(0,c,d)) == ewadd(matmul(a,c),matmul(b,d))",
    "concat(0,concat(1,a,b),concat(1,c,d)) == concat(1,concat(0,a,c),concat(0,b,d))",
    "concat(0,conv2d(1,1,0,0,x,w),conv2d(1,1,0,0,y,w)) == conv2d(1,1,0,0,concat(0,x,y),w)",
    "relu(a) == split_0(1,relu(concat(1,a,b))) ; relu(b) == split_1(1,relu(concat(1,a,b)))",
]
OF_CONSTANTS = [
    "transpose(Imatmul) == Imatmul",
    "matmul(Imatmul,Imatmul) == Imatmul",
    "matmul(transpose(Imatmul),a) == a",
    "enlarge(3,3,Iconv(1,1)) == Iconv(3,3)",
    "relu(Cpool(3,3)) == Cpool(3,3)",
    "matmul(a,smul(Imatmul,s)) == smul(a,s)",
    "matmul(a,concat(1,b,Imatmul)) == concat(1,matmul(a,b),a)",
    "ewmul(x,Iewmul) == x",
    "conv2d(1,1,0,2,x,ewadd(w,Iconv(3,3))) == relu(ewadd(x,conv2d(1,1,0,0,x,w)))",
    "conv2d(2,2,1,2,concat(0,x,y),Cpool(3,3)) == relu(poolavg(3,3,2,2,1,concat(0,x,y)))",
    "conv2d(1,1,0,0,x,poolavg(3,3,1,1,0,Iconv(3,3))) == poolavg(3,3,1,1,0,x)",
    "relu(ewmul(a,Imatmul)) == ewmul(relu(a),Imatmul)",
    "smul(ewmul(a,a),relu(s)) == relu(smul(ewmul(a,a),s))",
    "transpose(ewmul(Imatmul,a)) == ewmul(a,Imatmul)",
    "ewmul(relu(s),smul(t,t)) == relu(ewmul(smul(t,t),s))",
]
OF_PARTS = [
    "split_1(1,split_0(0,a)) == split_0(0,split_1(1,a))",
    "relu(split_1(0,a)) == split_1(0,relu(a))",
    "conv2d(1,1,0,0,concat(1,x,x),x) == conv2d(1,1,0,0,x,x)",
]
OF_PADDING = [
    "enlarge(3,3,ewadd(w,Iconv(1,1))) == ewadd(Iconv(3,3),enlarge(3,3,w))",
    "enlarge(3,3,concat(0,smul(w,s),relu(v))) == concat(0,smul(enlarge(3,3,w),s),relu(enlarge(3,3,v)))",
    "conv2d(1,1,0,0,x,w) == conv2d(1,1,0,0,x,enlarge(4,5,w))",
    "enlarge(5,5,enlarge(3,3,w)) == enlarge(5,5,w)",
    "smul(conv2d(2,2,0,0,x,w),s) == conv2d(2,2,0,0,smul(x,s),w)",
]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("matmul(matmul(a,b),c) == matmul(a,matmul(b,c))", "instance"),
        ("matmul(a,matmul(b,c)) == matmul(matmul(a,b),c)", "instance"),
        ("matmul(matmul(a,b),matmul(c,d)) == matmul(matmul(a,matmul(b,c)),d)", "derived"),
        ("ewadd(ewadd(a,b),c) == ewadd(ewadd(c,b),a)", "instance"),
        ("concat(0,concat(1,a,b),concat(1,c,d)) == concat(1,concat(0,a,c),concat(0,b,d))", "instance"),
        ("poolavg(3,3,1,1,0,x) == conv2d(1,1,0,0,x,Cpool(3,3))", "derived"),
    ],
)
def test_one_rule_several_or_none(text, outcome, known: KnownRules):
    assert judge(parse_line(text), known, CONFIG).outcome == outcome


@pytest.fixture(scope="module")
def known_without_joints(library: Library) -> KnownRules:
    rules = KnownRules()
    for rule in library.rules:
        if "Concat" not in rule.equation():
            rules.add(rule)
    return rules


@pytest.mark.parametrize("text", OF_JOINTS)
def test_equations_of_joints_follow_from_their_rules_alone(text, known: KnownRules, known_without_joints: KnownRules):
    assert judge(parse_line(text), known, CONFIG).outcome in ("instance", "derived")
    assert judge(parse_line(text), known_without_joints, CONFIG).outcome == "not_found"


@pytest.mark.parametrize("text", [*OF_CONSTANTS, *OF_PARTS])
def test_constants_and_parts_are_derived(text, known: KnownRules):
    """By facts and lemmas, which the library does not have: none of it is an instance of its rules."""
    assert judge(parse_line(text), known, CONFIG).outcome == "derived"


@pytest.fixture(scope="module")
def known_with_padding(library: Library) -> KnownRules:
    """With the declared rules of padding and of factors, whether they are shipped yet or not."""
    rules = KnownRules()
    declared = [rule for rule in rules_of(convolution) if rule.name.startswith("scale-out-of")]
    quickly = VerificationConfig(shapes=8, float_cases=1)
    for rule in (*library.rules, *(certified(rule, quickly) for rule in (*rules_of(padding), *declared))):
        rules.add(rule)
    return rules


@pytest.mark.slow
@pytest.mark.parametrize("text", OF_PADDING)
def test_padding_passes_what_keeps_zero(text, known_with_padding: KnownRules):
    assert judge(parse_line(text), known_with_padding, CONFIG).outcome in ("instance", "derived")


def test_one_of_the_parts_is_found_without_merging_all_pairs(known: KnownRules):
    found = judge(parse_line("split_1(1,conv2d(1,1,0,2,x,concat(0,v,w))) == relu(conv2d(1,1,0,0,x,w))"), known, CONFIG)
    assert (found.outcome, found.condition) == ("conditional", "every convolution has one group")


def test_without_rules_nothing_is_derived():
    assert (
        judge(parse_line("matmul(matmul(a,b),c) == matmul(a,matmul(b,c))"), KnownRules(), CONFIG).outcome == "not_found"
    )


@pytest.mark.parametrize(
    "text",
    [
        "poolmax(2,2,2,2,1,relu(x)) == relu(poolmax(2,2,2,2,1,x))",
        "relu(ewadd(relu(a),Imatmul)) == ewadd(relu(a),Imatmul)",
    ],
)
def test_what_only_numbers_show_is_neither_derived_nor_refuted(text, known: KnownRules):
    """Over the field a maximum is any function of what it sees, so that nothing passes through it, and a sum of what is
    not negative may be anything."""
    found = judge(parse_line(text), known, CONFIG)
    assert found.outcome == "not_found"
    assert "no float shows it to be false" in found.counter_example


def test_no_false_control_is_accepted_and_the_totals_add_up(library: Library):
    assert false_controls_accepted(library, CONFIG) == 0
    rules = [parse_line(text, number) for number, text in enumerate(["relu(a) == a", "matmul(a,Imatmul) == a"])]
    found = recall(rules, library, CONFIG)
    assert [f.outcome for f in found] == ["refuted", "derived"]
    assert totals(found) == {"instance": 0, "derived": 1, "conditional": 0, "refuted": 1, "not_found": 0}
    assert [f.to_json() for f in recall(rules, library, CONFIG)] == [f.to_json() for f in found]
