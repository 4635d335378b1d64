"""Fragments timed together: what is shared, what is taken off, and the noise."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.session import SETTINGS
from rlflow.runtime.timing import batches
from rlflow.runtime.timing.batches import (
    BatchConfig,
    FragmentTiming,
    estimate,
    time_batch,
    time_launch,
    time_probe_ms,
)
from rlflow.runtime.timing.fragments import Run

QUICK = BatchConfig(sessions=2, turns=1, eviction_bytes=1_000_000)
EMPTY_NS, LAUNCH_NS, PROBE_NS = 200, 50, 2_000_000


@pytest.fixture
def evictions(monkeypatch):
    """How often the caches were filled with something else."""
    made = []
    monkeypatch.setattr(batches, "evict", made.append)
    return made


@pytest.fixture
def clock(monkeypatch, evictions):
    """Runs take what this says instead of what they take: the aids as above, fragments what `of_fragment` says."""

    def read(of_fragment):
        def timed(fragment, turn):
            session = turn % len(fragment.sessions)
            aids = [
                (batches._probe, PROBE_NS),
                (lambda *key: batches._views(0, *key), EMPTY_NS),
                (lambda *key: batches._views(64, *key), EMPTY_NS + 64 * LAUNCH_NS),
            ]
            for aid, ns in aids:
                if fragment is aid(fragment.threads, len(fragment.sessions)):
                    return Run(session, ns, True)
            return of_fragment(session, turn)

        monkeypatch.setattr(batches, "timed", timed)

    return read


def test_each_fragment_has_its_timing_in_the_order_given(make_matmul, make_model):
    """One asks for a kernel that is not there, the last has a result of another size than declared."""
    unknown = make_model(
        [helper.make_node("Mod", ["x", "x"], ["y"], fmod=0)],
        [("x", TensorProto.FLOAT, [4])],
        [("y", TensorProto.FLOAT, [4])],
    )
    wrong = make_model(
        [helper.make_node("NonZero", ["x"], ["y"])],
        [("x", TensorProto.FLOAT, [4])],
        [("y", TensorProto.INT64, [1, 3])],
    )
    first, refused, last, stopped = time_batch(
        [make_matmul(4, 4), unknown, make_matmul(256, 256), wrong], setting="as_written", config=QUICK
    )
    assert isinstance(refused, RLFlowError)
    assert isinstance(stopped, RLFlowError)
    assert "Got: 4 Expected: 3" in str(stopped)
    assert first.ms < last.ms
    assert first.probe_ms == last.probe_ms > 0


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_a_model_pays_once_is_taken_off(make_matmul, clock, setting):
    clock(lambda session, turn: Run(session, 5000, True))
    (timing,) = time_batch([make_matmul(4, 4)], setting=setting, config=QUICK)
    assert timing == FragmentTiming((5000 - EMPTY_NS) / 1e6, 0.0, PROBE_NS / 1e6)


def test_no_price_is_negative(make_matmul, clock):
    clock(lambda session, turn: Run(session, EMPTY_NS - 1, True))
    (timing,) = time_batch([make_matmul(4, 4)], setting="as_written", config=QUICK)
    assert timing.ms == 0


def test_a_launch_is_what_a_view_adds(clock):
    clock(lambda session, turn: pytest.fail("there is no fragment"))
    launch = time_launch(QUICK)
    assert launch.ms == pytest.approx(LAUNCH_NS / 1e6, rel=1e-12)
    assert time_probe_ms(QUICK) == PROBE_NS / 1e6


def test_fragments_share_their_evictions(make_matmul, clock, evictions):
    clock(lambda session, turn: Run(session, 5000, True))
    config = BatchConfig(sessions=3, turns=4, eviction_bytes=77)
    timings = time_batch([make_matmul(2, 2)] * 5, setting="as_written", config=config)
    assert len(timings) == 5
    assert evictions == [77] * 12


def test_weights_are_held_together_as_far_as_they_fit(make_matmul, clock, evictions, monkeypatch):
    """Of 64, 1, 16, 4, 4 kB, 20 fit: the first goes alone and has two sessions, then come three, then one."""
    opened, prepare = [], batches.prepare
    monkeypatch.setattr(batches, "prepare", lambda *a, **k: (opened.append(k["sessions"]), prepare(*a, **k))[1])
    monkeypatch.setattr(batches, "_TOGETHER_BYTES", 21 * 1024)
    monkeypatch.setattr(batches, "_LARGE_BYTES", 17 * 1024)
    clock(lambda session, turn: Run(session, 5000, True))
    models = [make_matmul(2, width) for width in (128, 16, 64, 32, 32)]
    timings = time_batch(models, setting="as_written", config=BatchConfig(sessions=4, turns=1, eviction_bytes=8))
    assert [timing.ms for timing in timings] == [(5000 - EMPTY_NS) / 1e6] * 5
    assert opened == [2, 4, 4, 4, 4]
    assert len(evictions) == 3 * 4


@pytest.mark.parametrize(("spoilt", "rounds"), [(2, 11), (100, 27)])
def test_preempted_runs_are_repeated_but_not_for_ever(make_matmul, clock, evictions, spoilt, rounds):
    """9 clean runs are asked for: 2 spoilt ones come on top, but a machine that spoils all gets 27 rounds."""
    clock(lambda session, turn: Run(session, 9000 if turn < spoilt else 5000, turn >= spoilt))
    (timing,) = time_batch([make_matmul(2, 2)], setting="as_written", config=BatchConfig(turns=3))
    assert len(evictions) == rounds
    assert timing.ms == pytest.approx((5000 if spoilt < 27 else 9000) / 1e6 - EMPTY_NS / 1e6)


def test_a_fragment_that_is_done_is_not_run_for_others(make_matmul, clock):
    turns = []
    clock(lambda session, turn: (turns.append(turn), Run(session, 5000, turn > 0 or len(turns) > 1))[1])
    time_batch([make_matmul(2, 2)] * 3, setting="as_written", config=QUICK)
    assert sorted(turns) == [0, 0, 0, 1, 1, 1, 2]  # the first run of all was spoilt


@pytest.mark.parametrize(("cap_s", "expected"), [(0.001, 3), (0.04, 4), (3600.0, 9)])
def test_the_time_cap_leaves_a_run_of_each_session(make_matmul, clock, cap_s, expected):
    """Each run takes 10 ms."""
    turns = []
    clock(lambda session, turn: (turns.append(turn), Run(session, 10_000_000, True))[1])
    time_batch([make_matmul(2, 2)], setting="as_written", config=BatchConfig(turns=3, time_cap_s=cap_s))
    assert turns == list(range(expected))


@pytest.mark.parametrize(("name", "least"), [("size", 1), ("sessions", 2), ("turns", 1), ("threads", 1)])
def test_impossible_settings_are_refused(name, least):
    assert getattr(BatchConfig(**{name: least}), name) == least
    with pytest.raises(InputError, match=rf"{name} is {least - 1}; .* at least {least}"):
        BatchConfig(**{name: least - 1})


def test_a_pace_scales_price_and_noise_alike():
    timing = FragmentTiming(ms=0.5, sigma_ms=0.1, probe_ms=2.0)
    assert timing.at_pace(1.0) == FragmentTiming(0.25, 0.05, 1.0)
    assert timing.at_pace(2.0) == timing


def test_the_estimate_in_closed_form():
    """Fastest runs 10, 14, 18: mean 14, deviation 4; the gaps to the second fastest, of 1, are smaller than that."""
    runs = [
        Run(session, ns, True) for session, first in enumerate((10, 14, 18)) for ns in (first + 1, first, first + 50)
    ]
    assert estimate(runs) == pytest.approx((14, 4 / math.sqrt(3)))


def test_gaps_between_turns_are_noise_too():
    """All sessions agree to the nanosecond, each by one lucky run that is 6 faster than the next."""
    runs = [Run(session, ns, True) for session in range(3) for ns in (10, 16, 40)]
    assert estimate(runs) == pytest.approx((10, 6 / math.sqrt(3)))


RUNS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 10**9)), min_size=1, max_size=12)


@given(RUNS, st.integers(2, 1000))
def test_the_estimate_scales_with_the_clock(drawn, factor):
    plain = estimate([Run(session, ns, True) for session, ns in drawn])
    scaled = estimate([Run(session, factor * ns, True) for session, ns in drawn])
    assert scaled == pytest.approx((factor * plain.ns, factor * plain.sigma_ns), rel=1e-9)
    assert plain.sigma_ns >= 0


@given(RUNS, st.integers(0, 2), st.integers(1, 10**9))
def test_disturbed_runs_do_not_count_beside_others(drawn, session, ns):
    runs = [Run(*each, True) for each in drawn]
    if session in {run.session for run in runs}:
        assert estimate([*runs, Run(session, ns, False)]) == estimate(runs)


@pytest.mark.timing
@pytest.mark.parametrize("setting", SETTINGS)
def test_more_work_takes_longer(make_matmul, setting):
    """The large product has 512 times the work of the small one; 20 leaves room for any machine."""
    small, large = time_batch([make_matmul(64, 64), make_matmul(512, 512)], setting=setting)
    assert large.ms > 20 * small.ms


@pytest.mark.timing
def test_the_company_hardly_changes_a_price(make_matmul):
    """The same product alone and among fifteen others, in both orders; noise told by the timings themselves."""
    model, others = make_matmul(128, 512), [make_matmul(64, 256 + 16 * i) for i in range(15)]
    (alone,) = time_batch([model], setting="deployed")
    *_, last = time_batch([*others, model], setting="deployed")
    first, *_ = time_batch([model, *others], setting="deployed")
    assert [t.at_pace(alone.probe_ms).ms for t in (first, last)] == pytest.approx([alone.ms] * 2, rel=0.15)
