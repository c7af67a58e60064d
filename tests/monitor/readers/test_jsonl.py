"""JSON lines: every number exactly, every bad line alone, any cut."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import cuts, lines, read

from trainmon.readers.jsonl import JsonlReader
from trainmon.readers.linewise import CONFLICT_ERROR
from trainmon_rules.points import Boundary, Params


def jsonl(data, *args):
    return read(JsonlReader(), data, *args)


def test_every_way_to_write_a_number():
    r = jsonl(
        lines(
            '{"step": 9007199254740993, "a": NaN, "b": Infinity, "c": -Infinity, "d": "nan", "e": 1e400, "f": "2.5"}',
            '{"step": 9007199254740995, "a": 1, "b": 1.7976931348623157e308, "c": -1.797e308, "d": "inf", "e": null}',
        )
    )
    assert r.steps("a") == [2**53 + 1, 2**53 + 3]
    assert r.values("a") == ["nan", 1.0]
    assert r.values("b") == [math.inf, math.inf]
    assert r.values("c") == [-math.inf, -math.inf]
    assert r.values("d") == ["nan", math.inf]
    assert r.values("e") == [math.inf]
    assert r.values("f") == [2.5]
    assert dict(r.skipped) == {"nulls": 1}


@pytest.mark.parametrize(
    "bad",
    [
        b"Traceback (most recent call last):",
        b'{"step": 2, "loss": ',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"step": 2} {"step": 3}',
        b"\xff\xfe\x00garbage",
    ],
)
def test_a_bad_line_is_reported_with_its_place_and_the_rest_goes_on(bad):
    first = b'{"step": 1, "loss": 1}\n'
    r = jsonl(first + bad + b'\n{"step": 3, "loss": 3}\n')
    [problem] = r.problems
    assert (problem.line, problem.offset) == (2, len(first))
    assert "\n" not in problem.error
    assert len(problem.error) < 200
    assert r.steps("loss") == [1, 3]
    assert r.skipped["corrupt records"] == 1


def test_hostile_but_valid_lines_are_read():
    digits = "1" * 5000
    r = jsonl(lines(f'{{"step": 1, "loss": {digits}}}', '{"step": 2, "loss": 1, "loss": 2, "x\\ud800": 1}'))
    assert r.values("loss") == [math.inf, 2.0]
    assert set(r.points) == {"loss", "x\ufffd"}
    assert not r.problems


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r", "\r\r\n"])
def test_endings_blank_lines_and_bom(ending):
    text = ending.join(['{"step": 1, "loss": 1}', "", '{"step": 2, "loss": 2}', ""])
    assert jsonl(b"\xef\xbb\xbf" + text.encode()).steps("loss") == [1, 2]


@pytest.mark.parametrize(
    ("last", "steps", "cut"),
    [(b'{"step": 2, "loss": 2}', [1, 2], 0), (b'{"step": 2, "lo', [1], 1), (b'{"step": 2, "a": {"b": 1}', [1], 1)],
)
def test_a_last_line_without_its_end_is_kept_if_it_is_whole(last, steps, cut):
    r = jsonl(b'{"step": 1, "loss": 1}\n' + last)
    assert r.steps("loss") == steps
    assert r.skipped["cut last line"] == cut
    assert not r.problems


def test_a_line_over_a_mebibyte_is_passed_over_and_counted():
    r = jsonl(lines('{"step": 1, "loss": 1}', '{"step": 2, "x": "' + "y" * (1 << 20) + '"}', '{"step": 3, "loss": 3}'))
    assert r.steps("loss") == [1, 3]
    assert r.skipped["lines over the limit"] == 1


def test_a_hole_of_zero_bytes_costs_nothing_but_itself():
    r = jsonl(b'{"step": 1, "loss": 1}\n' + b"\0" * 4096 + b'{"step": 2, "loss": 2}\n')
    assert r.steps("loss") == [1, 2]
    assert r.skipped["zero-filled gaps"] == 1


def test_settings_nested_metrics_and_media():
    r = jsonl(
        lines(
            '{"type": "config", "args": {"lr": 0.1, "model": {"dim": 8}}, "argv": ["a"], "device": "cuda"}',
            '{"step": 1, "eval": {"loss": 2.0, "deep": {"er": 3}}, "hist": {"_type": "histogram", "bins": [1]}}',
        )
    )
    assert r.of(Params) == [Params(0, {"type": "config", "device": "cuda", "lr": 0.1, "model/dim": 8})]
    assert set(r.points) == {"eval/loss", "eval/deep/er"}
    assert dict(r.skipped) == {"media objects": 1}


def test_settings_on_a_line_with_metrics_keep_the_metrics():
    r = jsonl(lines('{"step": 1, "loss": 2.0, "config": {"lr": 0.1}}'))
    assert r.of(Params) == [Params(0, {"lr": 0.1})]
    assert r.values("loss") == [2.0]


def test_conflict_markers_end_runs_and_are_reported_once():
    a, b = '{"step": 1, "loss": 1}', '{"step": 1, "loss": 2}'
    r = jsonl(lines("<<<<<<< HEAD", a, "=======", b, ">>>>>>> other"))
    assert [e.row for e in r.of(Boundary)] == [1, 2]
    assert [(p.line, p.error) for p in r.problems] == [(1, CONFLICT_ERROR)]
    assert r.skipped["conflict markers"] == 3


def test_lines_that_are_no_object_are_counted():
    r = jsonl(lines("3", '"text"', "[1, 2]", '{"step": 1, "loss": 1}'))
    assert r.skipped["lines that are no object"] == 3
    assert r.count == 1


def test_a_hostile_number_of_shapes_is_read_in_bounded_memory():
    reader = JsonlReader()
    for i in range(2000):
        reader.feed(f'{{"step": {i}, "k{i}": 1}}\n'.encode())
    assert len(reader.records._shapes) <= 300


value = st.one_of(
    st.floats(), st.integers(), st.none(), st.booleans(), st.text(max_size=5), st.lists(st.integers(), max_size=2),
    st.sampled_from(["nan", "-inf", "1.5", 2**53 + 1, "val"]),
)  # fmt: skip
record = st.dictionaries(
    st.sampled_from(["step", "iter", "epoch", "mode", "loss", "acc", "lr", "config", "timestamp", "é"]),
    st.one_of(value, st.dictionaries(st.sampled_from(["a", "b"]), value, max_size=2)),
    max_size=6,
)
line = st.one_of(
    record.map(lambda r: json.dumps(r, ensure_ascii=False).encode()),
    st.sampled_from([b"", b"garbage", b"{", b"<<<<<<< HEAD", b"=======", b"\xff", b"\0\0{}", b"[1]"]),
)


@given(st.lists(line, max_size=12), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.booleans(), cuts)
def test_a_cut_or_a_pickled_reader_changes_nothing(rows, ending, ended, at):
    data = ending.join(rows) + (ending if ended else b"")
    assert jsonl(data, at, True) == jsonl(data)


@given(st.lists(st.fixed_dictionaries({"step": st.integers(0, 2**60), "x": st.floats()}), min_size=1, max_size=20))
def test_what_python_writes_is_what_we_read(rows):
    data = "".join(json.dumps(r) + "\n" for r in rows).encode()
    r = jsonl(data)
    assert r.steps("x") == [row["step"] for row in rows]
    back = [float(v) for v in r.values("x")]
    expected = [math.copysign(math.inf, x) if abs(x) >= 1.797e308 else x for x in (row["x"] for row in rows)]
    assert list(map(repr, back)) == list(map(repr, expected))
