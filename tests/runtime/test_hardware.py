import re
from dataclasses import replace

import onnxruntime as ort

from rlflow.runtime.hardware import fingerprint, machine_name, processor_name, processor_of, processor_traits


def test_the_fingerprint_is_stable_and_names_this_machine():
    mark = fingerprint(1)
    assert mark == fingerprint(1)
    assert mark.runtime_version == ort.__version__
    assert mark.cpu_model.strip()
    assert len(mark.key) == 12
    assert int(mark.key, 16) >= 0


def test_every_field_changes_the_key():
    mark = fingerprint(1)
    others = [
        fingerprint(2),
        replace(mark, cpu_model="another"),
        replace(mark, cores=mark.cores + 1),
        replace(mark, runtime_version="0.0"),
        replace(mark, pricing_protocol=mark.pricing_protocol + 1),
    ]
    assert len({mark.key, *(other.key for other in others)}) == 6


def test_a_processor_has_a_name_without_spaces_and_traits_that_can_be_compared():
    """By doublings: no cache is of no size, whatever a virtual machine says."""
    assert re.fullmatch(r"[a-z0-9.]+(-[a-z0-9.]+)*", processor_name())
    traits = processor_traits(2)
    assert {*traits} == {"l2_mb", "cache_mb", "avx512", "amx", "threads", "bandwidth_gb_s"}
    assert min(traits["l2_mb"], traits["cache_mb"], traits["bandwidth_gb_s"]) > 0
    assert traits["threads"] == 2.0
    assert {traits["avx512"], traits["amx"]} <= {0.0, 1.0}


def test_with_several_threads_a_machine_has_another_name_and_the_same_processor():
    names = [machine_name(threads) for threads in (1, 2, 4)]
    assert len(set(names)) == 3
    assert {processor_of(name) for name in names} == {processor_name()} == {names[0]}
