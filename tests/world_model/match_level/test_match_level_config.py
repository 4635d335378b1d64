"""Settings of the world model over match tokens, read from a section of conf/."""

import pytest

from rlflow.errors import InputError
from rlflow.settings import read_config
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig, MatchLevelModelConfig


def test_settings_are_read_by_name():
    assert read_config(MatchLevelModelConfig, {"epochs": 7}).epochs == 7
    assert read_config(MatchLevelDreamConfig, {"pessimism": 0.0}).pessimism == 0
    with pytest.raises(InputError, match="unknown setting tau"):
        read_config(MatchLevelDreamConfig, {"tau": 1})
