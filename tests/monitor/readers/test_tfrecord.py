"""Framing: whatever breaks, only what is broken is lost, and nothing is made up."""

import pickle
import struct
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tfevents_kit import frame, pieces

from trainmon.readers.crc import masked, short_length_checks
from trainmon.readers.resync import looks_like_events
from trainmon.readers.tfrecord import MAX_RECORD, PATIENCE, RecordCutter

PAYLOADS = [bytes([9, i]) + bytes(range(i + 1, i + 40)) for i in range(12)]
RECORDS = [frame(p) for p in PAYLOADS]
FILE = b"".join(RECORDS)
STARTS = [sum(map(len, RECORDS[:i])) for i in range(len(RECORDS) + 1)]


def cut(parts, pickled=False):
    cutter, out = RecordCutter(), []
    for part in parts:
        out.extend(cutter.feed(part))
        if pickled:
            cutter = pickle.loads(pickle.dumps(cutter))
    out.extend(cutter.finish())
    return cutter, out


def untouched(start, stop):
    """The records that bytes `start` to `stop` don't touch."""
    return [p for i, p in enumerate(PAYLOADS) if STARTS[i + 1] <= start or STARTS[i] >= stop]


def test_checksums_are_those_of_tensorflow():
    assert masked(bytes(8)) == 0x07980329  # as in tensorboard#5588
    table = short_length_checks()
    for length in (0, 1, 24, 255, 256, 65535):
        assert table[length] == masked(struct.pack("<Q", length))


def test_whole_file():
    cutter, out = cut([FILE])
    assert out == list(zip(STARTS[:-1], PAYLOADS, strict=True))
    assert cutter.offset == len(FILE)
    assert not cutter.problems
    assert not cutter.skipped


def broken_files():
    bad_length = bytearray(FILE)
    bad_length[STARTS[3]] ^= 4
    bad_payload = bytearray(FILE)
    bad_payload[STARTS[5] + 20] ^= 4
    both = bytearray(bad_payload)
    both[STARTS[4] + 9] ^= 1
    bad_end = bytearray(FILE)
    bad_end[STARTS[-2] + 8] ^= 1
    return {
        "whole": FILE,
        "bad last length": bytes(bad_end),
        "bad length": bytes(bad_length),
        "bad payload": bytes(bad_payload),
        "two in a row": bytes(both),
        "hostile length": FILE[: STARTS[2]] + frame(b"x", 1 << 38) + FILE[STARTS[2] :],
        "long lie": FILE[: STARTS[2]] + frame(b"x", 1 << 22) + FILE[STARTS[2] :],
        "hole": FILE[: STARTS[2] + 7] + bytes(130) + FILE[STARTS[2] + 137 :],
        "zeros behind": FILE + bytes(100),
        "torn": FILE[: STARTS[2] + 30] + FILE[STARTS[4] :],
        "cut": FILE[:-5],
        "junk first": b"\x01\x02\x03" + FILE,
        "junk": bytes(range(256)) * 3,
    }


@pytest.mark.parametrize("name", broken_files())
@given(cuts=st.lists(st.integers(0, 900), max_size=12), pickled=st.booleans())
@example(cuts=list(range(900)), pickled=False)
def test_cuts_change_nothing(name, cuts, pickled):
    data = broken_files()[name]
    whole, expected = cut([data])
    cutter, out = cut(pieces(data, cuts), pickled)
    assert out == expected
    assert cutter.problems == whole.problems
    assert cutter.skipped == whole.skipped
    assert cutter.offset == whole.offset


def test_a_bad_payload_loses_that_record():
    cutter, out = cut([broken_files()["bad payload"]])
    assert [p for _, p in out] == PAYLOADS[:5] + PAYLOADS[6:]
    [problem] = cutter.problems
    assert problem.offset == STARTS[5]
    assert cutter.skipped == {"corrupt records": 1}


def test_a_bad_length_loses_that_record_and_names_both_ends():
    cutter, out = cut([broken_files()["bad length"]])
    assert [p for _, p in out] == PAYLOADS[:3] + PAYLOADS[4:]
    [problem] = cutter.problems
    assert problem.offset == STARTS[3]
    assert f"from {STARTS[3]} to {STARTS[4]}" in problem.error
    assert cutter.skipped == {"corrupt records": 1}


def test_a_header_is_not_believed_where_its_payload_is_wrong():
    cutter, out = cut([broken_files()["two in a row"]])
    assert [p for _, p in out] == PAYLOADS[:4] + PAYLOADS[6:]
    assert len(cutter.problems) == 1


def test_each_flipped_bit_loses_at_most_the_record_it_is_in():
    for i in range(len(FILE)):
        for bit in range(8):
            data = bytearray(FILE)
            data[i] ^= 1 << bit
            cutter, out = cut([bytes(data)])
            assert [p for _, p in out] == untouched(i, i + 1), (i, bit)
            assert len(cutter.problems) == 1, (i, bit)
            assert looks_like_events(bytes(data)), (i, bit)


@pytest.mark.parametrize("length", [1 << 30, 1 << 38, 1 << 46, 1 << 63, (1 << 64) - 2, (1 << 64) - 1])
def test_a_hostile_length_is_never_allocated(length):
    data = FILE[: STARTS[2]] + frame(b"x", length) + FILE[STARTS[2] :]
    tracemalloc.start()
    cutter, out = cut([data])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [p for _, p in out] == PAYLOADS
    assert cutter.skipped == {"corrupt records": 1}
    assert peak < 8 << 20


def test_a_length_beyond_the_end_is_a_lie_if_records_stand_behind_it():
    cutter, out = cut([broken_files()["long lie"]])
    assert [p for _, p in out] == PAYLOADS
    assert cutter.skipped == {"corrupt records": 1}


def test_a_long_record_is_passed_over_without_being_held():
    payload = bytes(1 << 20)
    n = (MAX_RECORD >> 20) + 2
    header = struct.pack("<Q", n << 20)
    cutter = RecordCutter()
    out = list(cutter.feed(RECORDS[0] + header + struct.pack("<I", masked(header))))
    for _ in range(n):
        out.extend(cutter.feed(payload))
        assert len(pickle.dumps(cutter)) < 10_000
    out.extend(cutter.feed(b"\0\0\0\0" + RECORDS[1]))
    out.extend(cutter.finish())
    assert [p for _, p in out] == PAYLOADS[:2]
    assert out[1][0] == len(RECORDS[0]) + 16 + (n << 20)
    assert cutter.skipped == {"records over 16 MiB": 1}


def test_a_cut_tail_is_held_back_and_counted_at_the_end():
    for end in range(STARTS[3], STARTS[4]):
        cutter = RecordCutter()
        out = list(cutter.feed(FILE[:end]))
        assert [p for _, p in out] == PAYLOADS[:3]
        assert cutter.offset == STARTS[3]
        out.extend(cutter.finish())
        assert [p for _, p in out] == PAYLOADS[:3]
        assert cutter.skipped == ({"cut tail": 1} if end > STARTS[3] else {})
        assert not cutter.problems
        assert cutter.offset == STARTS[3]


def test_a_record_torn_by_a_crash_and_written_on_behind_it_loses_itself_alone():
    for end in range(STARTS[2] + 1, STARTS[3]):
        _, out = cut([FILE[:end] + FILE[STARTS[4] :]])
        assert [p for _, p in out] == PAYLOADS[:2] + PAYLOADS[4:], end


@pytest.mark.parametrize("size", [120, 200])
def test_a_hole_stops_the_reading_until_it_is_filled(size):
    for start in range(len(FILE) - size):
        data = FILE[:start] + bytes(size) + FILE[start + size :]
        cutter = RecordCutter()
        out = list(cutter.feed(data))
        assert cutter.in_hole, start
        assert cutter.offset in STARTS
        assert not cutter.problems
        assert list(cutter.feed(FILE[:50])) == []
        back = cutter.rewind()
        assert back == cutter.offset <= start
        assert cutter.rewind() is None
        out.extend(cutter.feed(FILE[back:]))
        assert [p for _, p in out] == PAYLOADS, start
        assert cutter.offset == len(FILE)


@pytest.mark.parametrize("size", [120, 200])
def test_a_hole_that_stays_costs_the_records_it_touches(size):
    for start in range(len(FILE) - size):
        data = FILE[:start] + bytes(size) + FILE[start + size :]
        zero = next(i for i in range(len(FILE)) if data[i : i + 50] == bytes(50))  # some bytes were zero before
        cutter, out = cut([data])
        assert [p for _, p in out] == untouched(max(zero, start), start + size), start
        [problem] = cutter.problems
        assert problem.error.startswith("zero-filled hole from ")
        assert problem.offset in STARTS


def test_a_hole_can_be_given_up_while_the_source_goes_on():
    cutter = RecordCutter()
    out = list(cutter.feed(broken_files()["hole"]))
    assert [p for _, p in out] == PAYLOADS[:2]
    out.extend(cutter.give_up())
    assert [p for _, p in out] == untouched(STARTS[2], STARTS[2] + 137)
    assert not cutter.in_hole
    out = list(cutter.feed(RECORDS[0]))
    assert out == [(len(FILE), PAYLOADS[0])]


def test_zeros_at_the_end_may_be_bytes_not_yet_visible():
    for end in range(STARTS[2] + 1, STARTS[3]):
        cutter = RecordCutter()
        out = list(cutter.feed(FILE[:end] + bytes(min(8, STARTS[3] - end))))
        back = cutter.rewind()
        if back is None:  # the whole record stands there
            assert len(out) == 3
            back = cutter.offset
        out.extend(cutter.feed(FILE[back:]))
        assert [p for _, p in out] == PAYLOADS


def test_patience_with_a_hole_ends_when_much_stands_behind_it():
    big = frame(b"\x09" + b"a" * ((1 << 20) - 1))
    cutter = RecordCutter()
    out = list(cutter.feed(FILE + bytes(500)))
    fed = 0
    while not out[len(PAYLOADS) :]:
        assert cutter.in_hole
        out.extend(cutter.feed(RECORDS[0] + big))
        fed += len(RECORDS[0] + big)
        assert fed < PATIENCE + 2 * len(big)
    assert fed >= PATIENCE - 500
    assert out[len(PAYLOADS)] == (len(FILE) + 500, PAYLOADS[0])
    assert len(cutter.problems) == 1


@given(st.binary(max_size=300), st.integers(0, len(FILE)))
def test_junk_never_raises_and_never_becomes_a_record(junk, at):
    _, out = cut([FILE[:at] + junk + FILE[at:]])
    assert {p for _, p in out} <= set(PAYLOADS)
    assert [p for _, p in out][-1:] == PAYLOADS[-1:] or at > STARTS[-2]


def test_event_files_are_told_by_their_first_bytes():
    assert looks_like_events(FILE[:12])
    assert looks_like_events(FILE)
    assert not looks_like_events(FILE[:11])
    assert not looks_like_events(b"")
    assert not looks_like_events(bytes(64))
    assert not looks_like_events(b'{"step": 1, "loss": 2.0}\n' * 20)
