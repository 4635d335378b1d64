from experiment.tables import evaluation_table, headroom_table, learned_table, methods_of

METHODS = ("original", "random", "greedy", "backtracking", "rlflow")


def test_the_markdown_table_says_what_the_metrics_say(evaluation):
    lines = evaluation_table(evaluation).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert len({len(row) for row in cells}) == 1
    assert [tuple(row[:2]) for row in cells[2:]] == [
        *(("bert", method) for method in METHODS),
        ("tiny", "original"),
        ("tiny", "greedy"),
    ]
    greedy = dict(zip(cells[0], cells[4], strict=True))
    assert greedy["improvement %"] == "8.00"
    assert greedy["latency ratio, as written"] == "1.060 [1.050, 1.080]"
    assert greedy["latency ratio, deployed"] == "1.110 [1.090, 1.120]"
    assert greedy["max relative error"] == "1.5e-07"
    assert dict(zip(cells[0], cells[6], strict=True))["seeds"] == "3"


def test_methods_come_in_the_order_of_the_results(evaluation):
    """Of all graphs together: a method that only the second one has comes last."""
    assert tuple(methods_of(evaluation)) == METHODS
    assert methods_of({"a": {"original": {}, "greedy": {}}, "b": {"greedy": {}, "own": {}}}) == [
        "original",
        "greedy",
        "own",
    ]


def test_the_table_of_the_headroom_marks_the_best_and_says_what_limited_it(documents):
    documents["headroom"]["bert"]["gpu"]["greedy"]["equivalent"] = False
    documents["headroom"]["bert"]["analytic"]["greedy"]["proven"] = True
    lines = headroom_table(documents["headroom"]).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert cells[0] == ["graph", "cost", "original", "greedy", "equality_saturation"]
    assert cells[2] == ["bert", "analytic", "0.00", "10.00 *proven*", "**20.00** *nodes*"]
    assert cells[3] == ["bert", "gpu", "0.00", "**10.00** *differs*", ""]


def test_the_table_of_learning_has_means_with_half_of_their_intervals(documents):
    """What is known exactly, and what one seed says, have none."""
    metrics, together = documents["learned"], documents["learned_summary"]
    low, high = metrics["bert"]["rlflow"]["improvement_percent_500_ci95"]
    assert high > low
    lines = learned_table(metrics, together, 500, "It has had no lesson.").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert cells[0] == ["graph", "greedy", "rlflow", "best known"]
    assert cells[2] == ["bert", "2.00", f"3.50 ± {(high - low) / 2:.2f}", "4.00 *equality_saturation*"]
    assert cells[3][:2] == ["share of the gap", ""]
    assert cells[3][2].startswith("0.75 ± ")
    metrics["bert"]["rlflow"]["improvement_percent_500_ci95"] = None
    assert lines[-1] == "It has had no lesson."
    assert "| 3.50 |" in learned_table(metrics, together, 500, "")
