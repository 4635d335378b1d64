"""What `rlflow optimise --budget 15s` takes for a model, and for its first answer: prints JSON, figures by model.

    python benchmarks/first_answer.py [MODEL.onnx ...]

By default, three models of the zoo. Counted are processes, and how often the model and the files that are made of it
are opened; seconds are those of processors, which a busy machine changes less than those on the wall. These are told by
phase as the report has them, and are to be taken on a quiet machine. The same script runs in an older checkout, of
which reports tell less.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from rlflow import zoo
from rlflow.onnx_io import save_model

ZOO: dict[str, dict[str, Any]] = {
    "bert": {"layers": 4, "hidden": 256, "heads": 4, "intermediate": 1024},
    "resnet50": {},
    "mobilenet_v2": {},
}
COUNTED = """
import json, sys
from pathlib import Path

told, given = map(Path, sys.argv[1:3])
seen = []

def note(event, arguments):
    if event == "subprocess.Popen":
        seen.append("processes")
    elif event == "open" and isinstance(arguments[0], (str, Path)):
        path, is_written = Path(arguments[0]), "w" in (arguments[1] or "r")
        if path == given:
            seen.append("the model opened")
        elif path.suffix in (".onnx", ".weights") and "rlflow-" in str(path):
            seen.append("files of models written" if is_written else "files of models opened")

sys.addaudithook(note)
sys.argv[1:3] = ["optimise", str(given)]
from rlflow.cli import main
try:
    main()
finally:
    told.write_text(json.dumps(seen))
"""
"""The command with all that its own process starts and opens, but for what ONNX Runtime itself opens."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL.onnx")
    models = parser.parse_args().models
    with tempfile.TemporaryDirectory() as folder:
        if not models:
            models = [Path(folder, f"{name}.onnx") for name in ZOO]
            for path in models:
                save_model(zoo.build(path.stem, **ZOO[path.stem]), path)
        json.dump({path.stem: figures(path.absolute(), Path(folder)) for path in models}, sys.stdout, indent=2)
    sys.stdout.write("\n")


def figures(model: Path, folder: Path) -> dict[str, Any]:
    """Counts and seconds of one run, which finds nothing that an earlier one has kept."""
    told, output = folder / "told.json", folder / "out.onnx"
    words = ("-o", output, "--budget", "15s", "--threads", "1", "--anew", "--json")
    with tempfile.TemporaryFile() as report:
        command = [sys.executable, "-c", COUNTED, *map(str, (told, model, *words))]
        environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(command, stdout=report, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"rlflow optimise {model} ended with {process.returncode}")
        report.seek(0)
        document = json.load(report)
    kept = {key: document[key] for key in ("written", "reason", "phases_s", "first_answer_s") if key in document}
    return {**Counter(json.loads(told.read_text())), "cpu_s": usage.ru_utime + usage.ru_stime, **kept}


if __name__ == "__main__":
    main()
