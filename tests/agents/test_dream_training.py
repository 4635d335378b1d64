"""What a training leaves behind: the controller, its score beside the untrained one's, and the real steps it took."""

import torch
from torch import nn

from rlflow.agents.dream_training import train_and_score, untrained_network
from rlflow.agents.selection import Selection, Trial


def network(weight: float) -> nn.Module:
    made = nn.Linear(1, 1, bias=False).requires_grad_(False)
    made.weight.fill_(weight)
    return made


def weight_of(one: nn.Module) -> float:
    return float(one.weight)


def test_without_a_judge_the_training_has_no_selection_and_takes_no_real_step():
    def train(selection: Selection[nn.Module] | None) -> nn.Module:
        assert selection is None
        return network(3.0)

    done = train_and_score(train, weight_of, 1.0, lambda controller: 10 * controller, None)
    assert (done.controller, done.score_percent, done.untrained_percent, done.rewrites) == (3.0, 30.0, 10.0, 0)


def test_the_judge_sees_controllers_and_its_steps_are_counted():
    seen: list[float] = []

    def judge(controller: float) -> Trial:
        seen.append(controller)
        return Trial(controller, rewrites=4)

    def train(selection: Selection[nn.Module] | None) -> nn.Module:
        assert selection is not None
        for weight in (2.0, 5.0, 3.0):
            selection.consider(network(weight))
        chosen = network(0.0)
        selection.choose(chosen)
        return chosen

    done = train_and_score(train, weight_of, 0.0, lambda controller: controller, judge)
    assert seen == [2.0, 5.0, 3.0]
    assert (done.controller, done.rewrites) == (5.0, 12)


def test_the_untrained_network_depends_on_the_seed_alone_and_does_not_disturb_torch():
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first, second, other = (untrained_network(lambda: nn.Linear(4, 4), seed=seed).weight for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert not first.requires_grad
