import json
from dataclasses import replace

import pytest

from rlflow.errors import InputError
from rlflow.trajectory.record import Trajectory, load, save


def test_text_and_back(episode):
    assert Trajectory.from_json(episode.to_json()) == episode
    assert "\n" not in episode.to_json()


def test_a_file_and_back(episode, tmp_path):
    path = tmp_path / "new" / "trajectories.jsonl"
    several = [episode, replace(episode, steps=episode.steps[:3]), replace(episode, steps=())]
    save(several, path)
    assert load(path) == several
    assert [p.name for p in path.parent.iterdir()] == ["trajectories.jsonl"]


@pytest.mark.parametrize(
    "text", ["", "no json", "[]", "{}", '{"steps": 1}', '{"steps": []}', '{"steps": [{"rule": "r"}]}', '"text"', "3"]
)
def test_what_is_no_trajectory_is_refused(text):
    with pytest.raises(InputError, match="not a trajectory"):
        Trajectory.from_json(text)


@pytest.mark.parametrize(
    ("field", "value"), [("start_hash", None), ("start_runtime_ms", "1"), ("seed", 0.5), ("library", 3)]
)
def test_a_field_of_another_type_is_named(episode, field, value):
    with pytest.raises(InputError, match=f"not a trajectory: {field} is"):
        Trajectory.from_json(json.dumps(json.loads(episode.to_json()) | {field: value}))


@pytest.mark.parametrize(
    ("field", "value"), [("location", "0"), ("location", 0.0), ("location", True), ("rule", ["r"]), ("runtime_ms", "1")]
)
def test_a_field_of_a_step_of_another_type_is_named(episode, field, value):
    content = json.loads(episode.to_json())
    content["steps"][-1][field] = value
    with pytest.raises(InputError, match=f"not a trajectory: {field} is"):
        Trajectory.from_json(json.dumps(content))


def test_brackets_without_end_are_refused():
    with pytest.raises(InputError, match="not a trajectory"):
        Trajectory.from_json("[" * 100_000)


def test_the_line_that_cannot_be_read_is_named(episode, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(f"{episode.to_json()}\n{episode.to_json()[:-20]}\n")
    with pytest.raises(InputError, match=r"t\.jsonl, line 2: not a trajectory"):
        load(path)


def test_a_missing_file_and_one_that_is_no_text_are_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "none.jsonl")
    (tmp_path / "t.jsonl").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "t.jsonl")


def test_a_failed_save_leaves_the_old_file(episode, tmp_path):
    path = tmp_path / "t.jsonl"
    save([episode], path)

    def broken():
        yield replace(episode, steps=episode.steps[:1])
        raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        save(broken(), path)
    assert load(path) == [episode]


def test_a_file_that_does_not_tell_the_matching_is_of_private_matching():
    """Files from before there was another still load."""
    text = Trajectory("0123456789abcdef", 1.0, "analytic", "library", (), matching="sharing").to_json()
    assert Trajectory.from_json(text).matching == "sharing"
    content = json.loads(text)
    del content["matching"]
    assert Trajectory.from_json(json.dumps(content)).matching == "private"
