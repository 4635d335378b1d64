"""A results document for each schema, with numbers of the shape that the stages produce."""

from typing import Any

import pytest

FIGURE = {"value": 0.9, "baseline": 0.5, "baseline_name": "majority", "cases": 120}
HASH = "0123456789abcdef"


def result(cost_after_ms: float = 10.0, ratio: float = 1.0, **others: Any) -> dict[str, Any]:
    return {
        "cost_before_ms": 10.0,
        "cost_after_ms": cost_after_ms,
        "improvement_percent": 10 * (10.0 - cost_after_ms),
        "latency_ratio_as_written": ratio,
        "latency_ratio_as_written_ci95": [ratio - 0.01, ratio + 0.02],
        "latency_ratio_deployed": ratio + 0.05,
        "latency_ratio_deployed_ci95": [ratio + 0.03, ratio + 0.06],
        "peak_memory_ratio": 1.0,
        "flops_ratio": 1.0,
        "launches_ratio": 1.2,
        "max_relative_error": 1.5e-7,
        "optimisation_s": 12.3,
        "training_s": 0.0,
        "real_interactions": 300,
        "seeds": [0],
    } | others


@pytest.fixture
def evaluation() -> dict[str, Any]:
    return {
        "bert": {
            "original": result(),
            "random": result(9.9, 1.01),
            "greedy": result(9.2, 1.06),
            "backtracking": result(9.1, 1.07),
            "rlflow": result(9.0, 1.08, training_s=200.0, seeds=[0, 1, 2], steps=11, distinct_rules=10),
        },
        "tiny": {"original": result(), "greedy": result(8.0, 1.2)},
    }


@pytest.fixture
def rules_applied() -> dict[str, Any]:
    return {
        "bert": {"rlflow": {"merge": 12, "sum": 25, "never": 0}, "greedy": {"sum": 25}},
        "tiny": {"rlflow": {"merge": 1, "cancel": 2}},
        "untouched": {"greedy": {}},
    }


@pytest.fixture
def sweep() -> dict[str, Any]:
    return {
        "points": [
            {
                "temperature": temperature,
                "dream_score_percent": dream,
                "dream_score_percent_ci95": [dream - 1, dream + 1],
                "real_score_percent": real,
                "real_score_percent_ci95": [real - 2, real + 2],
                "episodes": 5,
                "seeds": [0, 1],
            }
            for temperature, dream, real in [(1.5, 5.0, 7.0), (0.5, 9.0, 3.0)]
        ],
        "random_score_percent": 1.0,
        "random_episodes": 20,
    }


@pytest.fixture
def documents(evaluation, rules_applied, sweep) -> dict[str, Any]:
    return {
        "evaluate": evaluation,
        "equivalence": {
            "original": "model.onnx",
            "candidate": "faster.onnx",
            "equivalent": True,
            "reason": "in float64 they differ by 1.0e-14",
            "max_absolute_error": 1.5e-5,
            "max_relative_error": 7.5e-6,
            "tolerance": 3.3e-6,
            "draws": 3,
            "non_vacuous_draws": 3,
            "vacuous_outputs": [],
            "worst_output": "y",
            "worst_draw": 1,
            "seed": 0,
            "float64": {
                "difference": 1e-14,
                "allowed": 3.6e-13,
                "original_error": 6e-6,
                "candidate_error": 1.5e-6,
                "further": "original",
            },
        },
        "fuzz": {
            "library": HASH,
            "rewrites": 123456,
            "models": 34567,
            "informative_models": 34560,
            "rules": 690,
            "fewest_rewrites_of_a_rule": 100,
            "largest_share_percent": 3.2,
            "differences": 0,
            "largest_relative_error": 4.1e-6,
        },
        "rules_applied": rules_applied,
        "temperature_sweep": sweep,
        "seed_study": {
            "bert": [
                {
                    "seed": 0,
                    "rlflow_percent": 6.8,
                    "untrained_percent": 5.1,
                    "controller_alone_percent": 6.5,
                    "untrained_alone_percent": 0.4,
                    "greedy_percent": 6.9,
                    "backtracking_percent": 6.9,
                    "random_percent": 3.4,
                    "share_of_best_search": 0.99,
                    "dream_score_percent": 9.2,
                    "rules": 14,
                    "rules_that_fire": 10,
                    "rollout_steps": 7952,
                    "trial_steps": 120,
                    "policy_steps": 142,
                    "backtracking_expansions": 300,
                    "training_s": 184.8,
                }
            ]
        },
        "rule_study": {
            "library": {"hash": "0123456789abcdef", "declared": 154, "enumerated": 206},
            "generation": {
                "families": {
                    "algebra": {
                        "max_operators": 2,
                        "cpu_s": 9.4,
                        "enumerated": 2360,
                        "classes": 1708,
                        "duplicate_pairs": 663,
                        "after_renaming": 259,
                        "after_instance": 24,
                        "verified": 24,
                        "refuted": 0,
                        "kept": 41,
                    }
                },
                "cpu_s": 94.2,
            },
            "verification": {"rules": 360, "refuted": 0, "false_controls_refused": 28, "mean_ms": 155.0},
            "endurance": {
                "instances_asked": 1000,
                "instances_per_rule": 880.5,
                "instances": 316980,
                "rules": 360,
                "refuted": 0,
                "cancelled": 3,
                "max_relative_error": 2.0e-6,
            },
            "graphs": {
                "bert": {
                    "nodes": 400,
                    "rules": 19,
                    "locations": 700,
                    "paper_locations": 80,
                    "enumerated_rules_that_fire": 12,
                }
            },
            "recall": {
                "foreign.txt": {
                    "equations": 3,
                    "false_controls_accepted": 0,
                    "totals": {"instance": 1, "derived": 1, "conditional": 0, "refuted": 1, "not_found": 0},
                    "totals_of_enumerated_rules_alone": {
                        "instance": 1,
                        "derived": 0,
                        "conditional": 0,
                        "refuted": 1,
                        "not_found": 1,
                    },
                }
            },
        },
        "curves": {"loss": {"unit": "nats", "step_name": "epoch", "step": [0, 1], "value": [2.0, 1.0]}},
        "bench": [
            {
                "name": "real step",
                "value": 4.1,
                "unit": "ms",
                "baseline": "bound of issue 2",
                "baseline_value": 10,
                "cases": 200,
            }
        ],
        "generate_rules": {
            "generated": {
                "algebra": {
                    "operators": ["MatMul", "Add"],
                    "max_operators": 2,
                    "graphs_enumerated": 900,
                    "distinct_fingerprints": 700,
                    "candidate_pairs": 90,
                    "after_renaming": 40,
                    "after_common_subgraph": 20,
                    "verified": 20,
                    "rejected": 0,
                    "rules": 31,
                    "cpu_s": 4.5,
                }
            },
            "generation_cpu_s": 7.5,
            "declared": {"rules": 9, "verified": 9, "rejected": 0},
            "library": {"rules": 29, "selected": 15, "hash": HASH},
            "unsound_rules_accepted": FIGURE | {"value": 0, "baseline": 12, "baseline_name": "unchecked"},
            "shapes_checked": 300,
            "float_checks": 29,
            "generation_s": 8.0,
            "seed": 0,
        },
        "collect_rollouts": {
            "bert": {
                "episodes": 50,
                "steps": 900,
                "distinct_graphs": 700,
                "terminated": 30,
                "truncated": 20,
                "rules_available": 12,
                "rules_applied": 11,
                "matches_beyond_limit": 0,
                "mean_improvement_percent": FIGURE | {"baseline_name": "do_nothing"},
                "best_improvement_percent": FIGURE | {"baseline_name": "do_nothing"},
                "steps_per_s": 120.5,
                "wall_time_s": 8.0,
                "seed": 0,
            }
        },
        "fit_world_model": {
            "training_episodes": 40,
            "held_out_episodes": 10,
            "parameters": 100000,
            "epochs": 30,
            "losses": {"mixture": -3.0},
            "open_loop": [{"target": "z", "horizon": 5, "error": FIGURE | {"baseline_name": "copy"}}],
            "rule_mask_accuracy": FIGURE,
            "terminated_accuracy": FIGURE,
            "training_s": 100.0,
            "seed": 0,
        },
        "train_controller": {
            "updates": 20,
            "dream_steps": 40000,
            "dream_steps_per_s": 2000.0,
            "temperature": 1.0,
            "dream_score_percent": FIGURE | {"baseline_name": "untrained"},
            "real_score_percent": FIGURE | {"baseline_name": "random"},
            "real_interactions": 0,
            "training_s": 20.0,
            "seed": 0,
        },
        "rules_list": {
            "library_hash": HASH,
            "rules": [
                {
                    "id": "merge-3",
                    "name": "merge-2-matmuls",
                    "family": "merge",
                    "origin": "declared",
                    "equation": "MatMul(x, a); MatMul(x, b) => Split(MatMul(x, Concat(a, b)))",
                    "shapes": 64,
                    "digest": HASH,
                }
            ],
        },
        "rules_verify": {
            "library_hash": HASH,
            "seed": 1,
            "rules_verified": 76,
            "false_controls_refused": 10,
            "mean_ms": 8.5,
            "max_relative_error": 1.8e-7,
        },
        "rules_generate": {
            "output": "rules.jsonl",
            "library_hash": HASH,
            "declared": 36,
            "false_controls_refused": 10,
            "cpu_s": 5.0,
            "families": {
                "algebra": {
                    "enumerated": 2360,
                    "classes": 1708,
                    "duplicate_pairs": 663,
                    "after_renaming": 259,
                    "after_instance": 24,
                    "refuted": 0,
                    "kept": 40,
                    "cpu_s": 3.0,
                }
            },
        },
        "rules_diff": {
            "before": HASH,
            "after": HASH,
            "unchanged": 70,
            "added": [{"id": "merge-3", "name": "merge-2-matmuls", "equation": "a => b"}],
            "removed": [],
            "recertified": [],
        },
        "rules_recall": {
            "library_hash": HASH,
            "totals": {"instance": 1, "derived": 0, "conditional": 1, "refuted": 0, "not_found": 0},
            "false_controls_accepted": 0,
            "equations": [
                {"number": 0, "equation": "a == a", "outcome": "instance"},
                {
                    "number": 1,
                    "equation": "conv2d(1,1,0,0,x,w) == x",
                    "outcome": "conditional",
                    "condition": "every convolution has one group",
                    "counter_example": "the sides differ at x [1, 2, 3, 3]",
                },
            ],
        },
        "replay": {
            "trajectory": "t.jsonl",
            "model": "m.onnx",
            "faithful": True,
            "start_hash": HASH,
            "final_hash": HASH,
            "steps": [{"rule": "merge-3", "location": 0, "hash": HASH, "cost_ms": 1.0}],
        },
        "exports": {
            "library": HASH,
            "onnxruntime": "1.31.1",
            "torch": "2.13.0",
            "transformers": "5.23.0",
            "kinds": {
                kind: {
                    "models": 40,
                    "refused_by_exporter": 2,
                    "run_by_onnx_runtime": 39,
                    "survived": 38,
                    "with_matches": 35,
                    "rewritten": 35,
                    "rewrites": 690,
                    "tried": 8,
                    "optimised": 8,
                    "differences": 0,
                    "failures": 0,
                    "exceptions": [{"model": "vit_mae", "reason": "it draws random numbers"}],
                }
                for kind in (
                    *(f"torchscript_{opset}" for opset in (9, 11, 13, 14, 16, 18, 20)),
                    "torchscript_17_open",
                    "torch_export_18",
                    "torch_export_20_open",
                    "handmade",
                    "quantised",
                    "half_precision",
                    "fused",
                )
            },
        },
        "conformance": {
            "library": HASH,
            "onnx": "1.23.2",
            "onnxruntime": "1.31.1",
            "kinds": {
                kind: {
                    "models": 40,
                    "run_by_onnx_runtime": 35,
                    "survived": 35,
                    "in_context": 30,
                    "rewritten": 30,
                    "rewrites": 150,
                    "differences": 0,
                    "exceptions": [{"model": "test_string_concat", "reason": "it has no numbers"}],
                }
                for kind in (
                    "node",
                    "simple",
                    "pytorch-converted",
                    "pytorch-operator",
                    "light",
                    "light_with_drawn_weights",
                )
            },
            "damaged_files": {
                "files": 100,
                "accepted_by_onnx": 30,
                "accepted_and_refused": 2,
                "no_text": 1,
                "refused": 72,
                "without_value": 1,
                "exported": 27,
                "equal": 9,
                "failures": 0,
            },
        },
        "zoo_list": [{"name": "bert", "family": "transformer", "summary": "BERT", "settings": {"layers": 12}}],
    }
