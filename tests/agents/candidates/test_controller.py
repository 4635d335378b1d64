"""A controller over candidates on disk: what is read is what was written, and strangers are refused."""

import json
from pathlib import Path

import pytest
import torch
from support.candidate_agents import NETWORK, small_candidates, untaught
from support.contents import contents

from rlflow.agents.candidates.candidate_search import player_of
from rlflow.agents.candidates.controller import CandidateController
from rlflow.agents.candidates.training import trial
from rlflow.errors import InputError


def test_what_is_read_acts_as_what_was_written(tmp_path: Path) -> None:
    controller, process = untaught(), small_candidates()
    controller.save(tmp_path / "one")
    read = CandidateController.load(tmp_path / "one")
    assert read.arguments == controller.arguments
    assert trial(process, read).score_percent == trial(process, controller).score_percent
    players = [player_of(process, of) for of in (controller, read)]
    found = [player.play(torch.Generator().manual_seed(1), candidates=1) for player in players]
    ways = [[state.hash for state in best.path()] for best in found]
    assert ways[0] == ways[1]
    read.save(tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_it_refuses_what_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        CandidateController.load(tmp_path)
    untaught().save(tmp_path)
    file = tmp_path / "controller.json"
    description = json.loads(file.read_text())
    description["network"]["width"] = 2 * NETWORK.width
    file.write_text(json.dumps(description))
    with pytest.raises(InputError, match="cannot be read"):
        CandidateController.load(tmp_path)
