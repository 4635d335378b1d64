"""Settings of the world model over match tokens, read from a section of conf/."""

import pytest

from rlflow.errors import InputError
from rlflow.world_model.settings import read_config
from rlflow.world_model.tokens.config import TokenDreamConfig, TokenModelConfig


def test_settings_are_read_by_name():
    assert read_config(TokenModelConfig, {"epochs": 7}).epochs == 7
    assert read_config(TokenDreamConfig, {"pessimism": 0.0}).pessimism == 0
    with pytest.raises(InputError, match="unknown setting tau"):
        read_config(TokenDreamConfig, {"tau": 1})
