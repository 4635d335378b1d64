"""`rlflow check-results` as a person meets it."""


def test_results_are_checked(rlflow, tmp_path):
    code, _, err = rlflow("check-results", tmp_path)
    assert code == 1, "a folder without results proves nothing"
    assert str(tmp_path) in err
    (tmp_path / "evaluate").mkdir()
    (tmp_path / "evaluate" / "metrics.json").write_text('{"bert": {}}')
    code, _, err = rlflow("check-results", tmp_path)
    assert code == 1
    assert "evaluate/metrics.json" in err
