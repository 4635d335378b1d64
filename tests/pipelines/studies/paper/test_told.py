"""Figures in words: an interval where there are several seeds, and none where there is one."""

from studies.paper.told import gain_points, markdown_table, median_told, names_told, range_told
from support.papers import method, variant


def test_an_interval_stands_where_there_are_several_seeds():
    assert median_told(variant(2, improvement_percent=5.5), "improvement_percent") == "5.50 [5.00, 6.00]"
    assert median_told(variant(1, improvement_percent=5.5), "improvement_percent", 1) == "5.5"
    assert median_told(variant(1, improvement_percent=5.5), "optimisation_s") == "", "no such figure"


def test_one_method_is_compared_with_another_in_points():
    assert gain_points({"one": method(5.0), "other": method(3.5)}, "one", "other") == 1.5


def test_tables_names_and_ranges():
    assert markdown_table(("graph", "%"), [["bert", "1"]]) == "| graph | % |\n| :-- | --: |\n| bert | 1 |\n"
    assert (names_told([]), names_told(["bert", "vit"])) == ("none", "bert, vit")
    assert range_told([2.0, 1.0]) == "1.00 to 2.00 %"
    assert range_told([]) == "nothing that was measured"
