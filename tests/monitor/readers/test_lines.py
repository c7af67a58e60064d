"""The line cutter: every ending, any cut, lines that are too long."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from trainmon.readers import lines as module
from trainmon.readers.lines import MAX_LINE, LineCutter


def cut(pieces):
    cutter = LineCutter()
    out = [line for p in pieces for line in cutter.feed(p)]
    out += cutter.finish()
    return out, cutter.offset, cutter.too_long, cutter.number


def test_every_ending_ends_one_line():
    out, offset, *_ = cut([b"a\nb\r\nc\rd\r\r\ne"])
    assert [line for _, _, line in out] == [b"a", b"b", b"c", b"d", b"e"]
    assert [start for _, start, _ in out] == [0, 2, 5, 7, 11]
    assert [n for n, _, _ in out] == [1, 2, 3, 4, 5]
    assert offset == 12


def test_a_line_ended_by_cr_does_not_wait_for_the_next_byte():
    cutter = LineCutter()
    assert [line for _, _, line in cutter.feed(b"50%\r")] == [b"50%"]
    assert list(cutter.feed(b"\n")) == []
    assert [line for _, _, line in cutter.feed(b"51%\r")] == [b"51%"]


token = st.sampled_from([b"a", b"bb", b"\r", b"\n", b"\r\n", b"\r\r\n", b" "])


@given(st.lists(st.lists(token, max_size=4).map(b"".join), max_size=12))
@example([b"a", b"\r", b"\r", b"\n", b"\n"])
@example([b"a\rb", b"\rc"])
def test_pieces_do_not_matter(pieces):
    assert cut(pieces) == cut([b"".join(pieces)])


@settings(max_examples=25)
@given(st.integers(0, 2 * MAX_LINE + 100), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.integers(-2, 2))
def test_a_line_over_the_limit_is_passed_over_wherever_it_is_cut(at, ending, over):
    data = b"first" + ending + b"x" * (MAX_LINE + over) + ending + b"last" + ending
    whole = cut([data])
    assert whole == cut([data[:at], data[at:]])
    assert whole[2] == (over > 0)
    assert [line[:5] for _, _, line in whole[0]][-1] == b"last"


def test_a_long_line_without_an_end_is_counted_once():
    out, offset, too_long, _ = cut([b"x" * module.MAX_LINE, b"y" * 10, b"z"])
    assert (out, offset, too_long) == ([], module.MAX_LINE + 11, 1)
