import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import onnxruntime as ort
import pytest

from rlflow.runtime import hardware
from rlflow.runtime.hardware import (
    fingerprint,
    machine_name,
    processor_name,
    processor_of,
    processor_traits,
    usable_cores,
)


def test_the_fingerprint_is_stable_and_names_this_machine():
    mark = fingerprint(1)
    assert mark == fingerprint(1)
    assert mark.runtime_version == ort.__version__
    assert mark.cpu_model.strip()
    assert len(mark.key) == 12
    assert int(mark.key, 16) >= 0


def test_every_field_changes_the_key():
    mark = fingerprint(1)
    others = [
        fingerprint(2),
        replace(mark, cpu_model="another"),
        replace(mark, cores=mark.cores + 1),
        replace(mark, runtime_version="0.0"),
        replace(mark, pricing_protocol=mark.pricing_protocol + 1),
    ]
    assert len({mark.key, *(other.key for other in others)}) == 6


def test_a_processor_has_a_name_without_spaces_and_traits_that_can_be_compared():
    """By doublings: no cache is of no size, whatever a virtual machine says."""
    assert re.fullmatch(r"[a-z0-9.]+(-[a-z0-9.]+)*", processor_name())
    traits = processor_traits(2)
    assert {*traits} == {"l2_mb", "cache_mb", "avx512", "amx", "threads"}
    assert min(traits["l2_mb"], traits["cache_mb"]) > 0
    assert traits["threads"] == 2.0
    assert {traits["avx512"], traits["amx"]} <= {0.0, 1.0}


def test_with_several_threads_a_machine_has_another_name_and_the_same_processor():
    names = [machine_name(threads) for threads in (1, 2, 4)]
    assert len(set(names)) == 3
    assert {processor_of(name) for name in names} == {processor_name()} == {names[0]}


def test_a_process_that_is_bound_to_one_processor_has_one_core() -> None:
    """In a process of its own, since binding cannot be told from what bound this one."""
    one = min(os.sched_getaffinity(0))
    asked = f"import os; os.sched_setaffinity(0, [{one}]); from rlflow.runtime.hardware import usable_cores as cores"
    done = subprocess.run(
        [sys.executable, "-c", f"{asked}; print(cores())"], capture_output=True, check=True, text=True
    )
    assert int(done.stdout) == 1 <= usable_cores() <= (os.cpu_count() or 1)


def test_processors_that_share_a_core_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of six processors the process may use five, which are on three cores; of the last nothing is known."""
    for processor, siblings in enumerate(("0,3", "1,4", "2,5", "0,3", "1,4")):
        place = tmp_path / f"cpu{processor}/topology"
        place.mkdir(parents=True)
        (place / "thread_siblings_list").write_text(f"{siblings}\n")
    monkeypatch.setattr(hardware, "_PROCESSORS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 3, 4, 5})
    assert usable_cores() == 3
