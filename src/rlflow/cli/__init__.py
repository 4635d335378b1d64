"""The command line: `rlflow optimise | replay | rules | zoo | check-results`."""

from rlflow.cli.main import main as main
