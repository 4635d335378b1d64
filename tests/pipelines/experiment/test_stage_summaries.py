"""The few figures of each stage: means over graphs, in closed form."""

from pathlib import Path
from typing import Any

import pytest
from experiment.stage_summaries import gaps, of_evaluation, of_sweep, of_world_model, write_summary
from support import documents as examples
from support.views import SUMMARIES


@pytest.fixture
def documents() -> dict[str, Any]:
    return examples.documents()


def test_means_over_graphs(documents: dict[str, Any]):
    evaluation = documents["evaluate"]
    evaluation["tiny"]["rlflow"] = examples.result(8.0, 1.95)
    summary = of_evaluation(evaluation)
    assert summary["saved_%"] == pytest.approx((10 + 20) / 2)
    assert summary["speedup"] == pytest.approx((1.13 * 2.0) ** 0.5)


def test_either_formulation_has_a_figure_of_its_world_model(documents: dict[str, Any]):
    pooled, tokens = ({name: documents["fit_world_model"][name]} for name in ("bert", "tiny"))
    assert of_world_model(tokens) == {"v_r2": 0.9}
    assert of_world_model(pooled) == {"m_err": pytest.approx(0.9 / 0.5)}
    pooled["bert"]["open_loop"][0]["error"]["baseline"] = 0.0
    assert of_world_model(pooled) == {"m_err": 0.0}


def test_the_widest_gap_counts():
    """In percent of the larger score, whichever world has it and whatever its sign; two scores of nothing agree."""
    points = [
        {"dream_score_percent": dream, "real_score_percent": real}
        for dream, real in ((2.0, 1.5), (1.5, 2.0), (0.0, 0.0), (-1.0, -4.0))
    ]
    assert gaps(points) == pytest.approx([25.0, 25.0, 0.0, 75.0])
    assert of_sweep({"bert": {"points": points[:2]}, "tiny": {"points": points[2:]}}) == {"gap_%": 75.0}


def test_no_two_stages_name_a_figure_alike(documents: dict[str, Any]):
    """Or `dvc exp show` would put the paths of their files before the names."""
    documents["evaluate"]["tiny"]["rlflow"] = examples.result()
    names = [name for stage, of in SUMMARIES.values() for name in of(documents[stage])]
    assert len(names) == len(set(names)) >= len(SUMMARIES)


def test_figures_are_written_with_the_digits_that_are_read(tmp_path: Path):
    write_summary(tmp_path / "summary.yaml", {"rules": 635, "saved_%": 3.40512, "speedup": 1.02148})
    assert (tmp_path / "summary.yaml").read_text() == "rules: 635\nsaved_%: 3.41\nspeedup: 1.021\n"
