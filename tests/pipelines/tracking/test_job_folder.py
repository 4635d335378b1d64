"""The folders of jobs: readable where names may be so long, and never too long."""

from hypothesis import given
from hypothesis import strategies as st
from tracking.job_folder import job_folder


def test_overrides_name_their_folder() -> None:
    assert job_folder("controller=model_free,seed=0") == "controller=model_free,seed=0"
    assert job_folder("graph=file,model=/a/b.onnx") == "graph=file,model=/a/b.onnx"


@given(st.text(min_size=150, max_size=400), st.text(min_size=150, max_size=400))
def test_no_name_is_too_long_and_others_have_others(one: str, other: str) -> None:
    assert all(len(part.encode()) <= 200 for part in job_folder(one).split("/"))
    assert (job_folder(one) == job_folder(other)) == (one == other)


def test_what_differs_at_the_end_alone_differs() -> None:
    first, second = (job_folder("x" * 300 + str(seed)) for seed in (0, 1))
    assert first != second
    assert first.startswith("x" * 150)
