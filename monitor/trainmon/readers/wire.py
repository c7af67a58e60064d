"""Protobuf's wire format, as far as event files need it, without building messages.

Most of what an event file holds is passed over, and names that are no valid UTF-8 must not cost their record,
so fields are walked here and only tensors and hyper-parameters are handed to TensorBoard's own messages.
Follows the encoding rules of protobuf: unknown fields are passed over, the last of a repeated scalar counts,
repeated messages are merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Span = tuple[int, int]


class WireError(ValueError):
    """The bytes are no protobuf message."""


def varint(data: bytes, at: int, end: int) -> Span:
    """Return the unsigned integer at `at` and the position behind it."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise WireError("an integer doesn't end")


def signed(value: int) -> int:
    """Return what an unsigned 64-bit number means as int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield each field of the message in `at` … `end` as (key, start, stop).

    The key is `field number << 3 | wire type`. For integers `start` is the value; for the other types start
    and stop delimit the content.
    """
    while at < end:
        key, at = varint(data, at, end)
        kind = key & 7
        if key >> 3 == 0 or key >= 1 << 32:
            raise WireError("a field number is out of range")
        if kind == VARINT:
            value, at = varint(data, at, end)
            yield key, value, at
            continue
        if kind == BYTES:
            size, at = varint(data, at, end)
        elif kind == FIXED64:
            size = 8
        elif kind == FIXED32:
            size = 4
        else:
            raise WireError(f"wire type {kind} is not used in event files")
        if size > end - at:
            raise WireError("a field is longer than its message")
        yield key, at, at + size
        at += size


@dataclass(slots=True)
class RawValue:
    """One value of a summary: its tag as bytes, which member of the union it holds, and its metadata."""

    tag: bytes = b""
    kind: str = ""
    content: Span = (0, 0)
    plugin: bytes = b""
    plugin_content: bytes = b""


@dataclass(slots=True)
class RawEvent:
    """One event: times as spans into the record, the kind of its content, and a summary's values."""

    wall_time: Span | None = None
    step: int = 0
    kind: str = ""
    content: bytes = b""
    values: list[RawValue] = field(default_factory=list)


EVENT_KINDS = {
    3 << 3 | BYTES: "file version",
    4 << 3 | BYTES: "graphs",
    5 << 3 | BYTES: "summary",
    6 << 3 | BYTES: "log messages",
    7 << 3 | BYTES: "session log",
    8 << 3 | BYTES: "run metadata",
    9 << 3 | BYTES: "graphs",
}
VALUE_KINDS = {
    2 << 3 | FIXED32: "simple_value",
    3 << 3 | BYTES: "histograms",
    4 << 3 | BYTES: "images",
    5 << 3 | BYTES: "histograms",
    6 << 3 | BYTES: "audio",
    8 << 3 | BYTES: "tensor",
}


def read_event(data: bytes) -> RawEvent:
    """Take an event record apart; WireError if it is none."""
    event = RawEvent()
    for key, start, stop in fields(data, 0, len(data)):
        kind = EVENT_KINDS.get(key)
        if key == 1 << 3 | FIXED64:
            event.wall_time = start, stop
        elif key == 2 << 3 | VARINT:
            event.step = signed(start)
        elif kind is not None:
            if kind != event.kind:
                event.kind, event.content, event.values = kind, b"", []
            if kind == "summary":
                event.values.extend(_value(data, a, b) for k, a, b in fields(data, start, stop) if k == 1 << 3 | BYTES)
            elif kind == "session log":
                event.content += data[start:stop]
    return event


def _value(data: bytes, at: int, end: int) -> RawValue:
    value = RawValue()
    metadata = b""
    for key, start, stop in fields(data, at, end):
        kind = VALUE_KINDS.get(key)
        if key == 1 << 3 | BYTES:
            value.tag = data[start:stop]
        elif key == 9 << 3 | BYTES:
            metadata += data[start:stop]
        elif kind is not None:
            value.kind, value.content = kind, (start, stop)
    if metadata:
        _metadata(value, metadata)
    return value


def _metadata(value: RawValue, metadata: bytes) -> None:
    for key, start, stop in fields(metadata, 0, len(metadata)):
        if key == 1 << 3 | BYTES:
            for inner, a, b in fields(metadata, start, stop):
                if inner == 1 << 3 | BYTES:
                    value.plugin = metadata[a:b]
                elif inner == 2 << 3 | BYTES:
                    value.plugin_content = metadata[a:b]
