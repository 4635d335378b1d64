"""The command line: `rlflow optimise | equivalence | show | replay | rules | zoo`."""

from rlflow.cli.main import main as main
