"""What goes on where it was killed ends as if it had run through, to the bit, and takes nothing of another run."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
import torch
from support.resumable import RESUMABLE, Resumable


class Killed(Exception):
    """Stands for a kill between two steps."""


@pytest.fixture(params=RESUMABLE)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def whole() -> dict[str, tuple[bytes, list[int]]]:
    """The end of each run that was not killed, and its steps."""
    torch.set_num_threads(1)
    return {name: ended(resumable, None) for name, resumable in RESUMABLE.items()}


def ended(resumable: Resumable, place: Path | None, **changes: object) -> tuple[bytes, list[int]]:
    steps: list[int] = []
    return resumable.run(place, lambda step, *_: steps.append(step), **changes), steps


def kill(resumable: Resumable, place: Path, last: int) -> None:
    """Run until a step is over."""

    def on_step(step: int, *_: object) -> None:
        if step == last:
            raise Killed

    with pytest.raises(Killed):
        resumable.run(place, on_step)


def test_it_goes_on_after_the_step_at_which_it_was_killed(name: str, whole, tmp_path: Path):
    """At the first, in the midst or at the last; whatever the global generators have given since, and if it was
    complete, without a step.
    """
    end, steps = whole[name]
    assert len(steps) > 2
    for last in (steps[0], steps[len(steps) // 2], steps[-1]):
        place = tmp_path / str(last)
        kill(RESUMABLE[name], place, last)
        np.random.rand(3)  # noqa: NPY002
        torch.rand(3)
        assert ended(RESUMABLE[name], place) == (end, steps[steps.index(last) + 1 :])
        assert ended(RESUMABLE[name], place) == (end, [])


@pytest.mark.slow
def test_another_run_takes_nothing_of_it(name: str, whole, tmp_path: Path):
    """It goes and ends as it does from nothing."""
    for number, changes in enumerate(RESUMABLE[name].others()):
        place = tmp_path / str(number)
        ended(RESUMABLE[name], place)
        found, expected = (ended(RESUMABLE[name], kept, **changes) for kept in (place, None))
        assert found == expected, changes
        assert len(found[1]) == len(whole[name][1]), changes


@pytest.mark.slow
def test_what_is_broken_is_made_again(name: str, whole, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Any file that it keeps, cut off or spoiled."""
    end, _ = whole[name]
    place = tmp_path / "kept"
    ended(RESUMABLE[name], place)
    files = [file for file in (place, *sorted(place.rglob("*"))) if file.is_file()]
    for file in files[:5]:
        for content in (b"", b"half", file.read_bytes()[:-20]):
            caplog.clear()
            file.write_bytes(content)
            again, steps = ended(RESUMABLE[name], place)
            assert again == end
            assert steps
            assert caplog.text


@pytest.mark.slow
def test_a_killed_process_leaves_whole_steps(name: str, whole, tmp_path: Path):
    """kill -9 from outside after the second step, at whatever line it hits."""
    script = """
        import sys
        import torch
        from pathlib import Path
        from support.resumable import RESUMABLE
        torch.set_num_threads(1)
        RESUMABLE[sys.argv[1]].run(Path(sys.argv[2]), lambda step, *_: print(step, flush=True))
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", dedent(script), name, str(tmp_path / "kept")]
    end, expected = whole[name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == expected[1]:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    again, steps = ended(RESUMABLE[name], tmp_path / "kept")
    assert again == end
    assert expected[0] not in steps
