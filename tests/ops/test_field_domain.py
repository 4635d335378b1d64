"""The finite field in closed form: its arithmetic, its exponential, its signs, and what it leaves undefined."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlflow.errors import TypeInferenceError
from rlflow.ops.domain import FloatDomain
from rlflow.ops.field import FieldArray, FieldDomain, NoExponentError, P, Q
from rlflow.ops.registry import OPERATORS

TRIALS = (11, 12, 13)
SHAPE = (2, 3)


def _domain() -> FieldDomain:
    return FieldDomain(TRIALS)


def _drawn(count: int, seed: int = 0, shape: tuple[int, ...] = SHAPE) -> list[FieldArray]:
    rng = np.random.default_rng(seed)
    return [_domain().draw(shape, rng) for _ in range(count)]


def _defined(a: FieldArray) -> FieldArray:
    """The same with no element undefined."""
    return FieldArray(a.residue, a.exponent)


def _equal(a: FieldArray, b: FieldArray) -> bool:
    exponents = (a.exponent is None) == (b.exponent is None) and (
        a.exponent is None or b.exponent is None or np.array_equal(*np.broadcast_arrays(a.exponent, b.exponent))
    )
    return exponents and np.array_equal(*np.broadcast_arrays(a.residue, b.residue))


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % k for k in range(2, int(n**0.5) + 1))


def test_the_primes_are_as_stated() -> None:
    assert _is_prime(P)
    assert _is_prime(Q)
    assert P == 2 * Q + 1
    assert (P % 4, Q % 4, P % 8) == (3, 3, 7)
    assert (1 << 23) * (P - 1) ** 2 < 2**63, "the largest sum of products"


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_ring_laws(seed: int) -> None:
    d, (a, b, c) = _domain(), _drawn(3, seed)
    assert _equal(d.add(a, b), d.add(b, a))
    assert _equal(d.multiply(a, b), d.multiply(b, a))
    assert _equal(d.multiply(a, d.add(b, c)), d.add(d.multiply(a, b), d.multiply(a, c)))
    assert _equal(d.subtract(d.add(a, b), b), a)
    assert _equal(d.negate(d.negate(a)), a)
    assert not _equal(d.subtract(a, b), d.subtract(b, a))


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_reciprocals_are_inverses(seed: int) -> None:
    d, (a, b) = _domain(), _drawn(2, seed)
    assert _equal(d.multiply(a, d.reciprocal(a)), d.constant(1.0))
    assert _equal(d.reciprocal(d.reciprocal(a)), a)
    assert _equal(d.multiply(d.divide(a, b), b), a)


def test_division_by_zero_is_undefined_and_stays_so() -> None:
    d, (a, b) = _domain(), _drawn(2)
    zero = d.subtract(a, a)
    broken = d.divide(b, zero)
    assert broken.undefined.all()
    one = np.zeros((len(TRIALS), *SHAPE), bool)
    one[0, 1, 2] = True
    spoilt = FieldArray(a.residue, a.exponent, one)
    for result in (d.add(spoilt, b), d.multiply(spoilt, b), d.relu(spoilt), d.exp(spoilt), d.function("tanh", spoilt)):
        assert np.array_equal(np.broadcast_to(result.undefined, one.shape), one)
    assert np.array_equal(d.sum(spoilt, (1,)).undefined[0, :, 0], [False, True])
    (square,) = _drawn(1, shape=(3, 3))
    product = d.matmul(spoilt, square).undefined
    assert product[0].tolist() == [[False] * 3, [True] * 3]
    assert not product[1:].any()
    transposed = d.structural(lambda v: v.T, spoilt)
    assert transposed.undefined[0, 2, 1]
    assert transposed.undefined.sum() == 1


def test_nothing_else_is_undefined() -> None:
    d, (a, b) = _domain(), _drawn(2)
    for result in (d.add(a, b), d.divide(a, b), d.softmax(a, 1), d.relu(a), d.function("sqrt", a)):
        assert result.undefined is None


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_exponentials_turn_sums_into_products(seed: int) -> None:
    d, (a, b) = _domain(), _drawn(2, seed)
    assert _equal(d.exp(d.add(a, b)), d.multiply(d.exp(a), d.exp(b)))
    assert _equal(d.exp(d.negate(a)), d.reciprocal(d.exp(a)))
    assert _equal(d.exp(d.subtract(a, a)), d.multiply(d.exp(a), d.reciprocal(d.exp(a))))
    assert not _equal(d.exp(d.multiply(a, b)), d.multiply(d.exp(a), d.exp(b)))


def test_an_exponential_of_an_exponential_is_refused() -> None:
    d, (a,) = _domain(), _drawn(1)
    with pytest.raises(NoExponentError, match="cannot be modelled"):
        d.exp(d.add(d.exp(a), a))


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_rectified_squares_are_squares(seed: int) -> None:
    d, (a,) = _domain(), _drawn(1, seed)
    square = d.multiply(a, a)
    assert _equal(d.relu(square), square)
    assert _equal(d.relu(d.negate(square)), d.multiply(square, d.constant(0.0)))
    assert _equal(d.relu(d.relu(a)), d.relu(a))
    assert _equal(d.subtract(d.relu(a), d.relu(d.negate(a))), a)
    assert _equal(d.relu(d.multiply(a, d.constant(2.0))), d.multiply(d.relu(a), d.constant(2.0)))


def test_half_of_all_numbers_are_positive() -> None:
    d, (a, b) = _domain(), _drawn(2, shape=(100, 100))
    positive = (d.relu(a).residue == a.residue).mean()
    assert abs(positive - 0.5) < 4 * 0.5 / np.sqrt(a.residue.size)
    assert not _equal(d.relu(d.add(a, b)), d.add(d.relu(a), d.relu(b)))


def test_a_clip_is_any_function_that_keeps_what_it_made() -> None:
    """Half of all numbers stay, both bounds among them; each other becomes one of the two."""
    d, (a, b) = _domain(), _drawn(2, shape=(100, 100))
    once = d.clip(a, 0.0, 6.0)
    assert _equal(d.clip(once, 0.0, 6.0), once)
    assert not _equal(d.clip(once, 0.0, 1.0), once)
    ends = [d.constant(0.0), d.constant(6.0)]
    assert all(_equal(d.clip(end, 0.0, 6.0), end) for end in ends)
    stays = once.residue == a.residue
    assert set(np.unique(once.residue[~stays])) == {0, 6}
    assert abs(stays.mean() - 0.5) < 4 * 0.5 / np.sqrt(a.residue.size)
    assert not _equal(d.clip(d.add(a, b), 0.0, 6.0), d.add(once, d.clip(b, 0.0, 6.0)))
    assert not _equal(d.relu(d.clip(a, -2.0, -1.0)), d.clip(d.relu(a), -2.0, -1.0))
    assert not _equal(d.clip(a, None, 6.0), once)
    assert once.exponent is not None


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_rows_add_up_to_one(axis: int) -> None:
    d, (a,) = _domain(), _drawn(1)
    total = d.sum(d.softmax(a, axis), (axis,))
    assert (total.residue == 1).all()
    shifted = d.softmax(d.add(a, d.constant(3.0)), axis)
    assert _equal(shifted, d.softmax(a, axis))


def test_constants_are_exact_rationals() -> None:
    d, (a,) = _domain(), _drawn(1)
    eighth = d.constant(0.125)
    assert _equal(d.multiply(eighth, d.constant(8.0)), d.constant(1.0))
    assert _equal(d.add(d.constant(2.0), d.constant(-5.0)), d.constant(-3.0))
    assert _equal(d.mean(a, (0, 1)), d.multiply(d.sum(a, (0, 1)), d.reciprocal(d.constant(6.0))))
    # Any other number is a symbol, another one in each trial, the same wherever it occurs.
    epsilon = d.constant(1e-5)
    assert _equal(epsilon, d.constant(1e-5))
    assert not _equal(epsilon, d.constant(1e-6))
    assert len(set(epsilon.residue.reshape(-1).tolist())) == len(TRIALS)


def test_functions_are_fixed_by_name_and_trial_and_odd_where_they_are() -> None:
    d, (a,) = _domain(), _drawn(1)
    for name in ("erf", "tanh"):
        odd = d.function(name, d.negate(a)).residue
        assert np.array_equal(odd, (P - d.function(name, a).residue) % P)
    assert not np.array_equal(d.function("sqrt", d.negate(a)).residue, (P - d.function("sqrt", a).residue) % P)
    assert np.array_equal(d.function("erf", a).residue, _domain().function("erf", a).residue)
    assert not np.array_equal(d.function("erf", a).residue, d.function("tanh", a).residue)
    assert not np.array_equal(d.function("erf", a).residue, FieldDomain((1, 2, 3)).function("erf", a).residue)
    zero = d.subtract(a, a)
    assert not d.function("tanh", zero).residue.any()


def test_matmul_is_the_sum_of_products() -> None:
    d, (a,) = _domain(), _drawn(1, shape=(2, 4))
    (b,) = _drawn(1, seed=1, shape=(4, 3))
    product = d.matmul(a, b)
    assert product.shape == (2, 3)
    by_hand = sum((a.residue[:, 1, k].astype(object) * b.residue[:, k, 2].astype(object)) for k in range(4)) % P
    assert product.residue[:, 1, 2].tolist() == by_hand.tolist()
    vector = d.matmul(a, _drawn(1, shape=(4,))[0])
    assert vector.shape == (2,)


def test_trials_are_independent_of_one_another() -> None:
    d, (a, b) = _domain(), _drawn(2)
    whole = d.function("erf", d.add(d.relu(a), d.constant(1e-5)))
    for k, seed in enumerate(TRIALS):
        alone = FieldDomain((seed,))
        part = FieldArray(a.residue[k : k + 1])
        single = alone.function("erf", alone.add(alone.relu(part), alone.constant(1e-5)))
        assert np.array_equal(single.residue[0], whole.residue[k])
    assert not _equal(a, b)


# Ops whose meaning in the field is exact; Cast rounds, and Pow is exact for three exponents alone.
@pytest.mark.parametrize("op", ["Cast", "Pow"])
def test_what_has_no_exact_meaning_is_refused(op: str) -> None:
    attributes = {"Cast": {"to": "int32"}, "Pow": {"exponent": 1.5}}[op]
    with pytest.raises(TypeInferenceError, match="exact meaning"):
        OPERATORS[op].evaluate(_domain(), attributes, _drawn(1))


def test_layer_normalisation_removes_shift() -> None:
    d, (x,) = _domain(), _drawn(1, shape=(2, 4))
    scale, bias, shift = _drawn(1, 1, (4,))[0], _drawn(1, 2, (4,))[0], d.constant(7.0)
    attributes = {"axis": -1, "epsilon": 1e-5}
    evaluate = OPERATORS["LayerNormalization"].evaluate
    plain = evaluate(d, attributes, (x, scale, bias))[0]
    assert _equal(_defined(plain), _defined(evaluate(d, attributes, (d.add(x, shift), scale, bias))[0]))
    scaled = evaluate(d, attributes, (d.multiply(x, shift), scale, bias))[0]
    assert not np.array_equal(plain.residue, scaled.residue)


def test_the_float_domain_agrees_with_the_same_formulas() -> None:
    """The generic definitions (negate, subtract, divide, mean) and the float ones are one meaning."""
    from rlflow.ops.domain import Domain

    x, y = np.random.default_rng(0).standard_normal((2, 3, 4))
    f = FloatDomain()
    roundings = 8 * np.finfo(float).eps
    np.testing.assert_allclose(Domain.subtract(f, x, y), f.subtract(x, y), atol=roundings)
    np.testing.assert_allclose(Domain.divide(f, x, y), f.divide(x, y), rtol=roundings)
    np.testing.assert_allclose(Domain.mean(f, x, (0,)), f.mean(x, (0,)), atol=roundings)
