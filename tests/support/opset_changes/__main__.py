"""Make the table of the operators' changes anew, and write it into the library: `make renew NAME=opset_changes`."""

import logging
from importlib import resources
from pathlib import Path

from rlflow.atomic_file import written_whole
from support.conformance.guarded_process import GuardedProcess
from support.opset_changes.table import answer_to, as_text, made, transitions

TABLE = Path(str(resources.files("rlflow.onnx_io"))) / "opset_changes.jsonl"

_LOGGER = logging.getLogger(__name__)


def main() -> None:
    """Run all changes of all operators, minutes in all, and write what came of them."""
    rows = []
    with GuardedProcess(answer_to) as process:
        for transition in transitions():
            rows.append(made(transition, process))
            _LOGGER.info("%(operator)s %(before)d to %(after)d: %(alike)d alike, %(unlike)d not: %(lost)s", rows[-1])
    with written_whole(TABLE) as draft:
        draft.write_text(as_text(rows), encoding="utf-8")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main()
