"""Telling the formats apart by content: what the first bytes of a source can be, and what they can't.

Binary files are told by their magic numbers and refused with the way out. Text is judged line by line: JSON
objects, table rows, MLflow's triples; what is none of these is log text. The suffix is never asked.
"""

from __future__ import annotations

import re

from trainmon.readers.jsonl import parse_json
from trainmon.readers.keys import EPOCH_KEYS, STEP_KEYS, TIME_KEYS
from trainmon.readers.lines import BOM
from trainmon.readers.linewise import CONFLICT
from trainmon.readers.mlflow import LINE as MLFLOW
from trainmon.readers.table import Row, find_delimiter, is_row_of_numbers, split_row
from trainmon.readers.values import number

NO_LOG = "not a training log; give event files, JSON, JSON lines, CSV or log text"
WANDB = (
    "is a W&B run file, which only W&B can read; export the history with its API (`run.history()`, after `wandb sync`"
    " for an offline run) and replay that as CSV or JSON lines"
)
_MAGIC = (
    (b":W&B", WANDB),
    (b"SQLite format 3\0", f"is an SQLite database, {NO_LOG} (MLflow: export the metrics with its API)"),
    (b"PK\x03\x04", f"is a zip archive (a checkpoint, .npz or spreadsheet), {NO_LOG}"),
    (b"\x89PNG", f"is a PNG image, {NO_LOG}"),
    (b"\xff\xd8\xff", f"is a JPEG image, {NO_LOG}"),
    (b"%PDF", f"is a PDF document, {NO_LOG}"),
    (b"PAR1", f"is a Parquet file, {NO_LOG}; convert it to CSV or JSON lines first"),
    (b"ARROW1", f"is an Arrow file, {NO_LOG}; convert it to CSV or JSON lines first"),
    (b"\x89HDF", f"is an HDF5 file, {NO_LOG}"),
    (b"\x93NUMPY", f"is a NumPy array, {NO_LOG}"),
    (b"\x7fELF", f"is an executable, {NO_LOG}"),
    (b"\x28\xb5\x2f\xfd", "is zstd-compressed; decompress it first (`zstd -d`), or give it as .gz"),
    (b"\xfd7zXZ", "is xz-compressed; decompress it first (`xz -d`), or give it as .gz"),
    (b"BZh", "is bzip2-compressed; decompress it first (`bzip2 -d`), or give it as .gz"),
)  # fmt: skip
_PICKLE = re.compile(rb"\x80[\x02-\x05][\x00-\xff]")
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\v\b\x1b")) + b"\x7f"
_ENDING = re.compile(rb"\r++\n?|\n")
_NAME = re.compile(r"[\w./:@%()\[\]+*#-]{1,80}")
_PROSE = re.compile(r"[=:]\s|=")
_LOG_WORD = re.compile(r"loss|acc|reward|metric|lr", re.IGNORECASE)
_TOKEN = re.compile(
    r'[ \t\r\n]*(?:([{}\[\],:])|("(?:[^"\\]|\\.)*+")|(-?\d++(?:\.\d*+)?(?:[eE][+-]?\d*+)?|'
    r"-?Infinity|NaN|true|false|null))"
)


def refusal(head: bytes) -> str | None:
    """Return why bytes can't be a log in a format we read, as the rest of a sentence; None if they can."""
    for magic, why in _MAGIC:
        if head.startswith(magic):
            return why
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or _is_wide(head):
        return "is UTF-16 text; convert it first: iconv -f UTF-16 -t UTF-8 FILE > NEW"
    if _PICKLE.match(head):
        return f"is a Python pickle (a checkpoint), {NO_LOG}"
    text = re.sub(rb"\x00{64,}", b"", head)  # a hole that a crash left says nothing about the rest
    if not text:
        return "holds nothing but zero bytes"
    controls = len(text) - len(text.translate(None, _CONTROL))
    if text.count(0) * 100 > len(text) or controls * 20 > len(text):
        return f"is binary, {NO_LOG}"
    return None


def _is_wide(head: bytes) -> bool:
    """Whether every other byte is zero: ASCII written as UTF-16 without a byte order mark."""
    even, odd = head[0:4096:2], head[1:4096:2]
    low, high = sorted((even.count(0), odd.count(0)))
    return len(odd) >= 4 and high >= 0.9 * len(odd) and low <= 0.1 * len(odd)


def lines_of(head: bytes) -> list[bytes]:
    """Return the lines of the head that are not blank, the last one also where it may be cut."""
    lines = (line.strip(b"\0 \t\r\n\f\v") for line in _ENDING.split(head.removeprefix(BOM)))
    return [line for line in lines if line]


def json_kind(head: bytes, lines: list[bytes], more: bool) -> str:
    """Return "jsonl", "json" (one document), "text" (JSON among other lines) or "" (no JSON at all).

    Parameters
    ----------
    head : bytes
        The first bytes of the source.
    lines : list of bytes
        Its lines that are not blank.
    more : bool
        Whether the source may go on beyond the head, so that the last line may be cut.
    """
    first = lines[0]
    if first[:1] in b"{[" and (len(lines) > 1 or not more) and (value := _json(first)) is not None:
        if len(lines) == 1:
            return "json" if isinstance(value, list) or _is_document(value) else "jsonl"
        if isinstance(value, dict):
            return _lines_kind(lines, more)
    if first[:1] in b"{[":
        # A document's first line is no object, or it is its only line and longer than the head.
        if is_json_prefix(head.removeprefix(BOM)):
            return "json"
        if first[:1] == b"{":
            return _lines_kind(lines, more)
    return _lines_kind(lines, more)


def _lines_kind(lines: list[bytes], more: bool) -> str:
    """Judge lines one by one; broken JSON counts for JSON where other lines are whole."""
    whole = text = 0
    plain_first = False
    for i, line in enumerate(lines[:-1] if more and len(lines) > 1 else lines):
        if CONFLICT.match(line):
            continue
        if line[:1] == b"{" or line[-1:] == b"}":
            ok = line[:1] == b"{" and isinstance(_json(line), dict)
            whole += ok
            text += not ok and line[:1] != b"{" and b'{"' in line
        else:
            text += 1
            plain_first = plain_first or i == 0
    if not whole:
        return ""
    return "text" if plain_first or text > whole else "jsonl"


def _json(line: bytes) -> object | None:
    try:
        value: object = parse_json(line)
    except ValueError:
        return None
    return value


def _is_document(value: object) -> bool:
    """Whether an object that is alone in its file holds many records, rather than being one."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("log_history"), list):
        return True
    lists = [v for v in value.values() if isinstance(v, list) and len(v) > 1]
    numbers = sum(number(v) is not None for v in value.values())
    return len(lists) > numbers


def is_json_prefix(head: bytes) -> bool:
    """Whether the bytes are JSON as far as they go (one or more values, the last perhaps cut)."""
    text = head.decode("utf-8", "ignore").rstrip("\0 \t\r\n")
    stack: list[str] = []
    at, after_value = 0, False
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return _may_be_cut(text[at:].lstrip())
        mark, at = token.group(1), token.end()
        if mark is None or mark in "{[":
            if after_value and stack:
                return False
            if mark is None and not stack:
                return False  # a bare number or word is no document
            after_value = mark is None
            if mark:
                stack.append(mark)
        elif mark in "}]":
            if not stack or stack.pop() != {"}": "{", "]": "["}[mark]:
                return False
            after_value = True
        elif not after_value or (mark == ":" and stack[-1:] != ["{"]):
            return False
        else:
            after_value = False
    return True


def _may_be_cut(rest: str) -> bool:
    """Whether a token that isn't whole may be the beginning of one."""
    if rest.startswith('"'):
        return "\n" not in rest
    return rest == "-" or any(
        word.startswith(rest.lstrip("-")) for word in ("Infinity", "NaN", "true", "false", "null")
    )


def is_mlflow(lines: list[bytes], more: bool) -> bool:
    """Whether nearly all lines are `timestamp value step`, the first of them surely."""
    judged = lines[:-1] if more and len(lines) > 1 else lines
    fits = sum(MLFLOW.fullmatch(line) is not None for line in judged)
    return MLFLOW.fullmatch(judged[0]) is not None and fits >= 0.9 * len(judged)


def is_table(lines: list[bytes], more: bool) -> bool:
    """Whether the lines are a header (or numbers) and rows that fit it.

    Log text has commas too, so the header must look like names, and most rows must have as many cells as it
    promises, with a number among them.
    """
    texts = [line.decode("utf-8", "replace") for line in lines if not CONFLICT.match(line)]
    while texts and texts[0].startswith("#"):
        texts.pop(0)
    if more and len(texts) > 1:
        texts.pop()
    if not texts:
        return False
    delimiter = find_delimiter(texts[0])
    rows = [r for t in texts[:200] if (r := _split(t, delimiter))]
    if not rows or rows[0] != _split(texts[0], delimiter):
        return False
    header, rows = rows[0], rows[1:]
    if not delimiter:
        return len(rows) > 1 and _NAME.fullmatch(header[0]) is not None and all(is_row_of_numbers(r) for r in rows)
    if is_row_of_numbers(header):
        return _fitting(header, rows) >= 0.8 * len(rows)
    if not _is_header(header):
        return False
    if not rows:
        return all(_NAME.fullmatch(c) for c in header) or _names_a_log(header)
    with_number = sum(any(number(c) is not None for c in r) for r in rows)
    return _fitting(header, rows) >= 0.7 * len(rows) and 2 * with_number >= len(rows)


def _split(text: str, delimiter: str) -> Row:
    try:
        return split_row(text, delimiter)
    except ValueError:
        return ()


def _fitting(header: Row, rows: list[Row]) -> int:
    """Count the rows as wide as the header; or, in a ragged table, as wide as most rows, but not wider."""
    widths = [len(r) for r in rows]
    usual = max(set(widths), key=widths.count, default=0)
    return sum(w == len(header) or 2 <= w == usual < len(header) for w in widths)


def _is_header(cells: Row) -> bool:
    named = [c for c in cells if c]
    return (
        2 * len(named) > len(cells)
        and all(len(c) <= 128 and number(c) is None and not _PROSE.search(c) for c in named)
        and 2 * len(set(named)) > len(named)
    )


def _names_a_log(header: Row) -> bool:
    names = {c.lower() for c in header}
    known = {*STEP_KEYS, *EPOCH_KEYS, *TIME_KEYS}
    return len(names & known) > 1 or (bool(names & known) and any(_LOG_WORD.search(n) for n in names))
