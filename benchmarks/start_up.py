"""What a command costs before it does anything, and on a model of four nodes: prints JSON, CPU seconds by command.

    python benchmarks/start_up.py [--rounds 7]

User and system time of the whole process, median over rounds; each round runs every command once, so that a busy
machine is busy for all of them. A round before the first one fills the caches of the disk and of compiled code.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rlflow import zoo
from rlflow.onnx_io import save_model

PROGRAMS = Path(sys.executable).parent
COMMANDS = {
    "rlflow --help": ["rlflow", "--help"],
    "onnxslim --help": ["onnxslim", "--help"],
    "onnxsim --help": ["onnxsim", "--help"],
    "import onnx": ["python", "-c", "import onnx"],
    "import onnxruntime": ["python", "-c", "import onnxruntime"],
    "rlflow optimise": ["rlflow", "optimise", "tiny.onnx", "-o", "by_rlflow.onnx", "--budget", "1s"],
    "onnxslim": ["onnxslim", "tiny.onnx", "by_onnxslim.onnx"],
    "onnxsim": ["onnxsim", "tiny.onnx", "by_onnxsim.onnx"],
}
"""Ours beside what others' commands, and the libraries that they cannot do without, cost alone."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="rlflow-") as folder:
        save_model(zoo.build("tiny_chain"), Path(folder, "tiny.onnx"))
        taken = [{name: cpu_s(command, folder) for name, command in COMMANDS.items()} for _ in range(rounds + 1)][1:]
    medians = {name: statistics.median(each[name] for each in taken) for name in COMMANDS}
    json.dump({"rounds": rounds, "cpu_s": medians}, sys.stdout, indent=2)
    sys.stdout.write("\n")


def cpu_s(command: list[str], folder: str) -> float:
    """CPU time of one run in `folder`, where it finds the prices that the run before it left."""
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment = inherited | {"XDG_CACHE_HOME": str(Path(folder, "cache")), "OMP_NUM_THREADS": "1"}
    program, *arguments = command
    process = subprocess.Popen(
        [str(PROGRAMS / program), *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
