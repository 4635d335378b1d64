"""The documents of the six stages, a module each; curves are those of several, and `reproduction` is no stage's."""

from experiment.documents import (
    collect_rollouts,
    curves,
    evaluate,
    fit_world_model,
    generate_rules,
    temperature_sweep,
    train_controller,
)

DOCUMENTS = {
    "generate_rules/metrics.json": generate_rules.GenerateRules,
    "collect_rollouts/metrics.json": collect_rollouts.CollectRollouts,
    "fit_world_model/metrics.json": fit_world_model.FitWorldModel,
    "train_controller/metrics.json": train_controller.TrainController,
    "evaluate/metrics.json": evaluate.Evaluate,
    "evaluate/rules_applied.json": evaluate.RulesApplied,
    "evaluate/states.json": evaluate.States,
    "temperature_sweep/metrics.json": temperature_sweep.TemperatureSweep,
    "curves.json": curves.TrainingCurves,
}
"""Types of results files, by the pattern that the end of a file's path matches."""
