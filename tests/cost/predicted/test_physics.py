"""Physics: what is done is counted, and what it takes is found again."""

import numpy as np
import pytest
from support.cost_graphs import graph, weight
from support.price_models import examples, regions_of

from rlflow.cost.predicted.features import FeatureReader
from rlflow.cost.predicted.physics import TERMS, fit, milliseconds, terms


def test_the_terms_of_a_product_with_a_bias_by_hand() -> None:
    nodes = [("MatMul", "x w", "u"), ("Add", "u b", "y")]
    g = graph(nodes, {"x": (6, 4)}, {"y": (6, 16)}, {"w": weight(4, 16), "b": weight(16)})
    work = terms(FeatureReader().features(g, g.order), cold=1.0)
    assert {name: amount for name, amount in work.items() if amount} == {
        "region": 1,
        "launches": 2,
        "border values": 2,
        "border bytes": pytest.approx((24 + 96) * 4e-6),
        "weight bytes": pytest.approx((64 + 16) * 4e-6),
        "cold weight bytes": pytest.approx((64 + 16) * 4e-6),
        "inside bytes": pytest.approx(96 * 4e-6),
        "packed product flops": pytest.approx(2 * 6 * 16 * 4 * 1e-6),
        "elements": pytest.approx(96e-6),
    }


def test_every_region_has_every_term(bert) -> None:
    for region in regions_of([bert(layers=1)]).values():
        assert tuple(terms(FeatureReader().features(region, region.order), cold=1.0)) == TERMS


def test_a_fit_finds_the_paces_that_made_the_times() -> None:
    """As many regions as terms, drawn, and times that are exact: errors are those of solving, about 1e-12."""
    rng = np.random.default_rng(0)
    work = [dict(zip(TERMS, rng.uniform(0, 5, len(TERMS)).tolist(), strict=True)) for _ in range(200)]
    paces = {name: float(rng.uniform(0.001, 1)) for name in TERMS} | {"columns": 0.0}
    found = fit(work, [milliseconds(paces, entry) for entry in work])
    assert found == pytest.approx(paces, rel=1e-8, abs=1e-10)


def test_no_work_makes_a_region_faster(bert) -> None:
    """Times that fall with the work: coefficients stay at 0 and above, where plain least squares would go below."""
    work = [terms(e.features, cold=1.0) for e in examples(regions_of([bert(layers=1)]), lambda _: 1.0)]
    ms = [1.0 / (1.0 + entry["border bytes"]) for entry in work]
    assert min(fit(work, ms).values()) >= 0


def test_what_no_region_does_costs_nothing() -> None:
    work = [dict.fromkeys(TERMS, 0.0) | {"region": 1.0, "elements": float(n)} for n in range(1, 5)]
    found = fit(work, [0.1 + 0.2 * n for n in range(1, 5)])
    assert found["region"] == pytest.approx(0.1, rel=1e-8)
    assert found["elements"] == pytest.approx(0.2, rel=1e-8)
    assert all(found[name] == 0 for name in TERMS if name not in ("region", "elements"))
