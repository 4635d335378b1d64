"""What a stage declares is all that it can read and write."""

import pytest

from rlflow.errors import InputError
from rlflow.tracking.stage import Stage

pytestmark = pytest.mark.slow


def test_section_that_is_not_declared_cannot_be_read(start):
    def first(stage: Stage) -> None:
        stage.settings["temperature"]

    with pytest.raises(InputError, match="section temperature is read but not declared"):
        start(first)


def test_input_that_is_not_declared_cannot_be_read(start):
    def second(stage: Stage) -> None:
        assert stage.input("data/first/size.txt").name == "size.txt"
        stage.input("data/first_and_more")

    with pytest.raises(InputError, match="second reads data/first_and_more; add it to the stage's deps"):
        start(second)


def test_output_that_is_not_declared_cannot_be_written(start):
    def second(stage: Stage) -> None:
        stage.output("data/first")

    with pytest.raises(InputError, match="second writes data/first; add it to the stage's outs"):
        start(second)


def test_stage_that_dvc_does_not_know_is_refused(start):
    def third(stage: Stage) -> None:
        raise AssertionError("never called")

    with pytest.raises(InputError, match="has no stage third; the stages are config, first, second"):
        start(third)
