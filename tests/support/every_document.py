"""The types of all documents by a name: the command that prints one, or the file that holds one."""

from typing import Any

from experiment.documents.reproduction import ReproductionReport
from studies.documents import documents

from rlflow.schemas import OF_COMMANDS

EVERY: dict[str, Any] = {**documents(), **OF_COMMANDS, "verify_repro": ReproductionReport}
