"""The types of what commands print with `--json`."""

from collections.abc import Mapping
from typing import Any

from rlflow.schemas import doctor, equivalence, leaderboard, optimise, replay, rules

OF_COMMANDS: Mapping[str, Any] = {
    "optimise": optimise.OptimiseReport,
    "optimise --dispatch": optimise.DispatchReport,
    "doctor": doctor.DoctorReport,
    "equivalence": equivalence.EquivalenceReport,
    "replay": replay.ReplayReport,
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
