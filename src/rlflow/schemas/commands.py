"""The types of what commands print with `--json`."""

from collections.abc import Mapping
from typing import Any

from rlflow.schemas import leaderboard, reports, rules

OF_COMMANDS: Mapping[str, Any] = {
    "optimise": reports.OptimiseReport,
    "optimise --dispatch": reports.DispatchReport,
    "doctor": reports.DoctorReport,
    "equivalence": reports.EquivalenceReport,
    "replay": reports.ReplayReport,
    "rules list": rules.RulesList,
    "rules show": rules.RuleRecord,
    "rules why": rules.RulesWhy,
    "rules verify": rules.RulesVerify,
    "rules generate": rules.RulesGenerate,
    "rules recall": rules.RulesRecall,
    "rules diff": rules.RulesDiff,
    "zoo list": rules.ZooList,
    "leaderboard show": leaderboard.LeaderboardShow,
}
"""The type of a command's document, by the command."""
