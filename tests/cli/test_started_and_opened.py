"""How often a run starts a process, reads the model and writes one: counted, whatever the machine does beside."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest
from support.onnx_models import save

COUNTED = """
import json, sys
from pathlib import Path

told, seen = Path(sys.argv.pop(1)), []

def note(event, arguments):
    if event == "subprocess.Popen":
        seen.append(["process", ""])
    elif event == "open" and str(arguments[0]).endswith((".onnx", ".weights")):
        seen.append(["write" if "w" in (arguments[1] or "r") else "read", Path(arguments[0]).name])

sys.addaudithook(note)
from rlflow.cli import main
try:
    main()
finally:
    told.write_text(json.dumps(seen))
"""
"""The command with all that it starts and opens, but for what ONNX Runtime itself opens."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Counter[tuple[str, str]]:
    folder = tmp_path_factory.mktemp("counted")
    small = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 64, "positions": 8}
    model, told = save(folder / "given.onnx", "bert", **small), folder / "seen.json"
    search = ("--budget", "2m", "--method", "greedy", "--cost-model", "analytic", "--threads", "1", "--default-options")
    command = [sys.executable, "-c", COUNTED, told, "optimise", model, "-o", folder / "out.onnx", "--json", *search]
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(command, check=True, capture_output=True, env=environment)
    report = json.loads(done.stdout)
    assert report["race"], "it was judged, raced and checked: each runs a model that nobody has run yet"
    assert {"reading", "rules", "judging", "searching", "racing", "checking"} <= {*report["phases_s"]}
    assert 0.0 < report["first_answer_s"] <= sum(report["phases_s"].values())
    return Counter([*map(tuple, json.loads(told.read_text())), ("", report["written"])])


def test_one_process_runs_all_that_nobody_has_run_yet(seen: Counter[tuple[str, str]]) -> None:
    assert seen["process", ""] == 1


def test_the_model_is_parsed_once_and_hashed_once(seen: Counter[tuple[str, str]]) -> None:
    """And copied where the original is delivered."""
    assert seen["read", "given.onnx"] == 2 + (seen["", "original"] == 1)


def test_each_model_is_written_once(seen: Counter[tuple[str, str]]) -> None:
    """What is run is read many times; each session maps it."""
    written = {name: count for (how, name), count in seen.items() if how == "write"}
    assert {"original.onnx", "original.weights", "candidate_0.onnx", "candidate_0.weights"} <= {*written}
    assert set(written.values()) == {1}
