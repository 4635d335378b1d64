"""The zoo's names as cases of a test; the large models, which take seconds to build, with the slow ones."""

import pytest

from rlflow import zoo

_LARGE = {"inception_v3", "resnet50", "vit"}

ZOO = [pytest.param(name, marks=pytest.mark.slow) if name in _LARGE else name for name in zoo.names()]
