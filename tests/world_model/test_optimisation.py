"""The learning rate decays."""

from rlflow.world_model.optimisation import polynomial_decay


def test_the_learning_rate_decays_with_power_two() -> None:
    assert [polynomial_decay(progress) for progress in (0.0, 0.5, 1.0)] == [1.0, 0.25, 0.0]
