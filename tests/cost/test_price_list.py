import json

import pytest

from rlflow.cost.price_list import Price, PriceList, load, read
from rlflow.errors import PriceError
from rlflow.runtime.timing.batches import PROTOCOL_VERSION

HEAD = f'{{"protocol": {PROTOCOL_VERSION}, "hardware": "abc", "machine": "m", "block": 16, '


@pytest.fixture
def prices() -> PriceList:
    made = PriceList("abc", "a machine", probe_ms=0.75, block=8)
    made.add("deployed", "f2", Price(0.5, "MatMul", sigma_ms=0.0125))
    made.add("as_written", "f1", Price(0.25, "Add", estimated=True))
    return made


def test_a_saved_list_is_the_same_list(prices, tmp_path):
    path = tmp_path / "new" / "prices.json"
    prices.save(path)
    assert load(path, "abc") == prices
    assert [p.name for p in path.parent.iterdir()] == ["prices.json"]


def test_a_compressed_list_is_the_same_list_and_equal_lists_are_equal_files(prices, tmp_path):
    for name in ("a.json.gz", "b.json.gz"):
        prices.save(tmp_path / name)
    assert load(tmp_path / "a.json.gz", "abc") == prices
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert (tmp_path / "a.json.gz").read_bytes()[:2] == b"\x1f\x8b"


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_damaged_compressed_list_is_refused(prices, tmp_path, kept):
    path = tmp_path / "p.json.gz"
    prices.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(PriceError, match=r"p\.json\.gz is not a price list .* delete it"):
        read(path)


def test_equal_lists_are_equal_files(prices, tmp_path):
    other = PriceList("abc", "a machine", probe_ms=0.75, block=8)
    for key, price in reversed(prices.prices.items()):
        other.prices[key] = price
    prices.save(tmp_path / "a.json")
    other.save(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_a_price_is_never_replaced_and_settings_do_not_mix(prices):
    prices.add("deployed", "f2", Price(9.0, "again"))
    assert prices.get("deployed", "f2") == Price(0.5, "MatMul", sigma_ms=0.0125)
    assert prices.get("as_written", "f2") is None


def test_another_machine_is_refused_by_name_and_may_be_read(prices, tmp_path):
    prices.save(tmp_path / "p.json")
    assert read(tmp_path / "p.json") == prices
    with pytest.raises(PriceError, match=r"p\.json was measured on other hardware \(a machine\): delete it"):
        load(tmp_path / "p.json", "abd")


@pytest.mark.parametrize(("protocol", "named"), [(None, "unknown"), (PROTOCOL_VERSION - 1, PROTOCOL_VERSION - 1)])
def test_prices_that_were_measured_in_another_way_are_refused(prices, tmp_path, protocol, named):
    """The first list is one of before the protocol was written down."""
    path = tmp_path / "p.json"
    prices.save(path)
    content = json.loads(path.read_text())
    assert content.pop("protocol") == PROTOCOL_VERSION
    path.write_text(json.dumps(content | ({"protocol": protocol} if protocol else {})))
    before = path.read_bytes()
    with pytest.raises(PriceError, match=rf"another way \(protocol {named}, not {PROTOCOL_VERSION}\).*: delete it"):
        load(path, "abc")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        "",
        "no json",
        "[]",
        "{}",
        HEAD + '"prices": {}}',
        HEAD + '"probe_ms": 1.0, "prices": {"k": {"ms": 1}}}',
        HEAD + '"probe_ms": 1.0, "prices": {"k": 1}}',
        HEAD + '"probe_ms": 1.0, "prices": [1]}',
        HEAD + '"probe_ms": 1.0, "prices": {"k": {"ms": "fast", "description": "d"}}}',
        HEAD + '"probe_ms": 1.0, "prices": {"k": {"ms": -1.0, "description": "d"}}}',
        HEAD + '"probe_ms": 1.0, "prices": {"k": {"ms": NaN, "description": "d"}}}',
        HEAD + '"probe_ms": 1.0, "prices": {"k": {"ms": 1.0, "description": "d", "sigma_ms": -1}}}',
    ],
)
def test_a_damaged_file_is_refused(content, tmp_path):
    """All but the first four are right up to the prices."""
    (tmp_path / "p.json").write_text(content)
    with pytest.raises(PriceError, match=r"p\.json is not a price list .* delete it"):
        load(tmp_path / "p.json", "abc")


def test_a_truncated_file_is_refused(prices, tmp_path):
    prices.save(tmp_path / "p.json")
    whole = (tmp_path / "p.json").read_bytes()
    (tmp_path / "p.json").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PriceError, match="is not a price list"):
        load(tmp_path / "p.json", "abc")
    (tmp_path / "p.json").write_bytes(b"\xff\xfe")
    with pytest.raises(PriceError, match="is not a price list"):
        load(tmp_path / "p.json", "abc")


def test_a_missing_file_says_what_to_run(tmp_path):
    with pytest.raises(PriceError, match="run the stage that takes the prices"):
        load(tmp_path / "none.json", "abc")


def test_a_failed_save_leaves_the_old_list(prices, tmp_path, monkeypatch):
    path = tmp_path / "p.json"
    prices.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(json, "dumps", lambda *a, **k: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        PriceList("abc", "m").save(path)
    assert path.read_bytes() == before
