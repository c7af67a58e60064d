"""Reading logs: one module a format, recognised by content.

`sniff` looks at a source's first bytes and returns the reader for it. To add a format: write the module with
a class that follows `base.Reader`, teach `sniff` to tell it apart, and add sample files to
`tests/data/formats`.
"""

from __future__ import annotations

from trainmon.readers.base import Reader
from trainmon.readers.events import EventReader
from trainmon.readers.jsonl import JsonlReader
from trainmon.readers.resync import looks_like_events
from trainmon_rules.errors import BadInput

HEAD = 1 << 16  # bytes that `sniff` wants to see, if the source has that many


def sniff(name: str, head: bytes) -> Reader:
    """Return a reader for a source that begins with `head`; BadInput if it is no log that we read."""
    if looks_like_events(head):
        return EventReader()
    if not head.strip():
        raise BadInput(name, "is empty")
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return JsonlReader()
    raise BadInput(name, "is not a training log in a format we read")


__all__ = ["HEAD", "Reader", "sniff"]
