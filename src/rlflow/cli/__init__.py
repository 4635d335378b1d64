"""The command line: `rlflow optimise | equivalence | show | replay | rules | zoo | check-results`."""

from rlflow.cli.main import main as main
