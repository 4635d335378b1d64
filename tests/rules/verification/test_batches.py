"""Many draws at once are what each is alone."""

from random import Random

import numpy as np

from rlflow.ops.domain import FloatDomain
from rlflow.ops.float_batch import FloatBatch
from rlflow.rules.plan import run_plan
from rlflow.rules.rule import rule_from_json
from rlflow.rules.verification.batches import batches, in_double, on_the_way, outputs_of
from rlflow.rules.verification.sampler import Sampler

SOURCE = ["Mul", ["Add", "a", "b"], "b"]
RULE = rule_from_json("scaled", "test", [SOURCE], [["Mul", "b", ["Add", "b", "a"]]], {})


def test_a_batch_is_its_draws() -> None:
    case, rng = Sampler(RULE).sides(Sampler(RULE).draw(Random(1))), np.random.default_rng(0)
    assert case is not None
    values = batches(case.instance, lambda shape: rng.standard_normal((5, *shape)))
    (together,) = outputs_of(case.source, values)
    assert together.dtype == np.float32
    for draw in range(5):
        (alone,) = run_plan(case.source, [value.values[draw] for value in values], FloatDomain())
        np.testing.assert_array_equal(together[draw], alone)


def test_all_steps_come_out_in_their_order_and_in_float64() -> None:
    case = Sampler(RULE).sides(Sampler(RULE).draw(Random(1)))
    assert case is not None
    values = in_double(batches(case.instance, lambda shape: np.full((1, *shape), 0.1)))
    added, scaled = outputs_of(on_the_way(case.source, 2), values)
    assert isinstance(values[0], FloatBatch)
    assert added.dtype == scaled.dtype == np.float64
    assert np.allclose(added, 0.2)
    assert np.allclose(scaled, 0.02)
