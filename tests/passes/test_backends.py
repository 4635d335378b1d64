"""Backends by name."""

import pytest

from rlflow.errors import InputError
from rlflow.passes.backends import BACKENDS, backend_of


@pytest.mark.parametrize("name", BACKENDS.built_in)
def test_every_backend_has_what_its_catalogue_says(name: str) -> None:
    """Each name means a backend that calls itself so, whose references can be run and whose dataset has families."""
    backend = backend_of(name)
    known = backend.catalogue()
    assert known.name == name
    assert len(set(known.passes)) == len(known.passes) > 40
    assert {known.default, *known.chain} <= set(known.pipelines)
    assert set(known.simplifiers) <= {*known.passes, *known.pipelines}
    families = {source.family for source in backend.sources()}
    assert len(families) >= 5, "or none could be held out"


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="there is no pass backend 'gcc': choose one of onnx, onnx-contrib, xla"):
        backend_of("gcc")
