"""Reading logs: one module a format, recognised by content.

`sniff` looks at a source's first bytes and returns the reader for it. To add a format: write the module with
a class that follows `base.Reader`, teach `sniff` to tell it apart (what needs more than a magic number stands in
`recognition`), and add tests under `tests/monitor/readers`.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from trainmon.readers.base import Reader
from trainmon.readers.documents import DocumentReader
from trainmon.readers.events import EventReader
from trainmon.readers.jsonl import JsonlReader
from trainmon.readers.mlflow import MlflowReader
from trainmon.readers.recognition import NO_LOG, is_mlflow, is_table, json_kind, lines_of, refusal
from trainmon.readers.resync import looks_like_events
from trainmon.readers.table import TableReader
from trainmon.readers.text import TextReader, looks_like_text_log
from trainmon_rules.errors import BadInput

HEAD = 1 << 16  # bytes that `sniff` wants to see, if the source has that many


def sniff(name: str, head: bytes) -> Reader:
    """Return a reader for a source.

    Parameters
    ----------
    name : str
        The source's name, a relative path; its last part names the metric in formats that don't (MLflow,
        TensorBoard's CSV export). It is never used to recognise the format.
    head : bytes
        The first `HEAD` bytes of the source, all of it if it is smaller.

    Raises
    ------
    BadInput
        If it is no log that we read; the message says what it is and what to do.
    """
    if looks_like_events(head):  # binary: before everything that looks at text
        return EventReader()
    if not head.strip(b"\0 \t\r\n\xef\xbb\xbf"):
        raise BadInput(name, "holds nothing but zero bytes" if b"\0" in head else "is empty")
    if (why := refusal(head)) is not None:
        raise BadInput(name, why)
    head, more = head[:HEAD], len(head) >= HEAD
    lines = lines_of(head)
    kind = json_kind(head, lines, more)
    if kind == "json":
        return DocumentReader()
    if kind == "jsonl":
        return JsonlReader()
    if kind != "text":
        if is_mlflow(lines, more):
            return MlflowReader(PurePosixPath(name).name)
        if is_table(lines, more):
            return TableReader(table_tag(name))
    if looks_like_text_log(head):
        return TextReader()
    if kind == "text":
        return JsonlReader()
    raise BadInput(name, f"is {NO_LOG}")


def table_tag(name: str) -> str:
    """Return the tag that a TensorBoard CSV export is named after: `run-x-tag-loss.csv` is "loss"."""
    stem = PurePosixPath(name).name.removesuffix(".gz").removesuffix(".csv")
    return stem.rpartition("-tag-")[2] or "value"


__all__ = ["HEAD", "Reader", "sniff"]
