"""TASO's notation is read, and what cannot be read is named."""

import pytest

from rlflow.errors import InputError
from rlflow.synthesis.taso.equations import Call, Name, names, parse_line, read_equations

A, B = Name("a"), Name("b")


def test_a_line_is_a_number_and_one_equation_an_output():
    rule = parse_line("70: relu(a) == split_0(1, concat(1,a,b)) ; b == split_1(1,concat(1,a,b))")
    joined = Call("concat", (1,), (A, B))
    assert rule.number == 70
    assert rule.pairs == (
        (Call("relu", (), (A,)), Call("split_0", (1,), (joined,))),
        (B, Call("split_1", (1,), (joined,))),
    )
    assert names(*rule.pairs[0]) == ("a", "b")


def test_constants_have_numbers_alone():
    rule = parse_line("matmul(a,Imatmul) == conv2d(1,1,0,2,a,Iconv(3,3))")
    left, right = rule.pairs[0]
    assert left == Call("matmul", (), (A, Call("Imatmul")))
    assert right == Call("conv2d", (1, 1, 0, 2), (A, Call("Iconv", (3, 3))))
    assert names(left, right) == ("a",)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("relu(a)", "no equation"),
        ("relu(a) == relu(a) == a", "no equation"),
        ("relu(a == a", "lacks its closing"),
        ("gelu(a) == a", "unknown operator 'gelu'"),
        ("ewadd(a) == a", "ewadd has 0 numbers and 1 operands, not 0 numbers and 2"),
        ("concat(a,b) == a", "concat has 0 numbers"),
        ("concat(a,0,b) == a", "expected an operator or a variable, found '0'"),
        ("relu == a", "relu is an operator and needs its operands"),
        ("a b == a", "follows the end"),
        ("a + b == a", "'+' is not understood"),
        (" == a", "found 'nothing'"),
        ("relu(a)) == a", "')' follows the end"),
        ("relu((a) == a", "found '('"),
        ("relu(a) == a ; ; relu(b) == b", "'' is no equation"),
        ("conv2d(0,1,0,0,x,w) == x", "conv2d: number 1 is 0, expected at least 1"),
        ("conv2d(1,1,0,1,x,w) == x", "conv2d: number 4 is 1, expected (0, 2)"),
        ("poolmax(3,3,1,1,2,x) == x", "poolmax: number 5 is 2, expected (0, 1)"),
        (f"{'relu(' * 3000}a{')' * 3000} == a", "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(line, reason, tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text(f"# remark\n\nrelu(a) == a\n{line}\n")
    with pytest.raises(InputError, match="line 4") as caught:
        read_equations(path)
    assert reason in str(caught.value)


def test_numbers_may_be_missing_and_a_file_must_say_something(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text("# remark\nrelu(a) == a\n7: relu(a) == a\nrelu(b) == b\n")
    assert [rule.number for rule in read_equations(path)] == [0, 7, 2]
    path.write_text("# nothing\n")
    with pytest.raises(InputError, match="holds no equation"):
        read_equations(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_equations(tmp_path / "none.txt")


def test_files_of_other_systems_are_read(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_bytes(b"\xef\xbb\xbf# remark\r\n\r\n\t7:\trelu(a) == a ;\r\nrelu(b)\t==\tb # why\r\n")
    rules = read_equations(path)
    assert [rule.number for rule in rules] == [7, 1]
    assert [rule.pairs for rule in rules] == [parse_line(f"relu({name}) == {name}").pairs for name in "ab"]
