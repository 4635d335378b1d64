"""Rules are known by id: switching one off or adding one never shifts another."""

import logging

import numpy as np
import pytest

from rlflow.world_model.graph_level.rule_alignment import RuleAlignment


def test_counts_and_actions_follow_the_ids() -> None:
    alignment = RuleAlignment.of(["merge", "fold", "split"], ["split", "merge"])
    assert alignment.counts(np.array([5, 7])).tolist() == [7, 0, 5]
    assert alignment.action(0, 3) == (1, 3)
    assert alignment.action(2, 4) == (0, 4)
    assert alignment.action(3, 0) == (2, 0)  # terminate of one is terminate of the other


def test_an_unseen_rule_is_masked_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        alignment = RuleAlignment.of(["merge"], ["novel", "merge"])
    assert "novel" in caplog.text
    assert alignment.counts(np.array([9, 2])).tolist() == [2]
