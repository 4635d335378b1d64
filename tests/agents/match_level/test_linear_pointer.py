"""A linear policy over kinds: its scores are what is written down, whatever the order and number of places."""

import torch

from rlflow.agents.match_level.linear_pointer import LinearPointer
from rlflow.world_model.match_level.observation import TokenLayout

EMBEDDING = 2
LAYOUT = TokenLayout(3, EMBEDDING)


def policy() -> LinearPointer:
    made = LinearPointer(EMBEDDING).requires_grad_(False)
    made.kind.copy_(torch.tensor([1.0, -2.0, 0.7, 3.0, 0.5, 0.1]))
    made.context.copy_(torch.tensor([0.3, 0.2, 0.9, -0.4, 0.0, 1.0, 2.0]))
    made.bias.fill_(-0.7)
    return made


def observation() -> torch.Tensor:
    """Three places, the second one empty."""
    classes = torch.tensor([[0.5, 0.1, -0.6, 1.0, 0.7, 0.0], [0.0] * 6, [-0.2, 0.3, 0.8, 0.4, 1.1, 1.0]])
    return torch.cat([classes.flatten(), torch.tensor([0.25])])[None]


def test_logits_are_the_linear_scores():
    classes = LAYOUT.split(observation()).classes[0]
    made = policy()
    scores = [float(classes[0] @ made.kind), float(classes[2] @ made.kind)]
    terminate = float((classes[0] + classes[2]) / 2 @ made.context[:-1] + 0.25 * made.context[-1] - 0.7)
    expected = torch.log_softmax(torch.tensor([scores[0], -torch.inf, scores[1], terminate]), dim=0)
    torch.testing.assert_close(made.distribution(observation()).log_probability[0], expected)


def test_order_and_empty_places_do_not_matter():
    seen = observation()
    classes = LAYOUT.split(seen).classes
    turned = torch.cat([classes[:, [2, 0, 1]].flatten(1), torch.zeros(1, LAYOUT.width), seen[:, -1:]], dim=1)
    before = policy().distribution(seen).log_probability[0]
    after = policy().distribution(turned).log_probability[0]
    torch.testing.assert_close(after, torch.tensor([before[2], before[0], -torch.inf, -torch.inf, before[3]]))


def test_where_nothing_is_there_it_terminates():
    nothing = torch.zeros(1, LAYOUT.size)
    assert policy().distribution(nothing).log_probability.tolist() == [[-torch.inf] * 3 + [0.0]]
