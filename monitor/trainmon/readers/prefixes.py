"""What stands before the message of a log line: colours, ranks, levels, time stamps, progress bars.

A time stamp becomes the record's wall time. Where it names no zone it is taken as UTC: offsets between lines
are what matters, and the log does not say where it was written. Stamps without a year (glog's
`I0719 12:00:00.123`) or without a date are removed but give no wall time.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from trainmon.readers.values import parse_time

_LEVEL = r"(?:TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|SUCCESS)"
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]")
_PREFIX = re.compile(
    rf"""(?:
      \[?(?P<iso>\d{{4}}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)?)\]?
    | \[?(?P<us>\d\d/\d\d/\d{{4}}[ ]\d\d:\d\d:\d\d)\]?            # Hugging Face examples
    | \[?\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?\]?(?=\s)
    | \[(?:(?:default|[Rr]ank|RANK|gpu)[ ]?\d{{1,6}}|titan)\]:?    # torchrun, torchtitan
    | \[\d{{1,6}},\d{{1,6}}\](?:<\w{{1,8}}>)?:                     # mpirun
    | \[pod/[^\]]{{1,200}}\]                                        # kubectl logs --prefix
    | \d{{1,6}}:(?=\s)                                             # srun --label
    | \((?:\w{{1,40}}[ ])?pid=[^)]{{1,80}}\)                       # Ray
    | [IWEF]\d{{4}}[ ]\d\d:\d\d:\d\d\.\d{{1,9}}\s{{1,8}}\d{{1,9}}[ ][\w./-]{{1,120}}:\d{{1,7}}\]  # glog
    | \[{_LEVEL}(?:\|[^\]\s]{{1,120}})?\]
    | {_LEVEL}\s{{0,8}}\|(?:\s{{0,4}}[\w.:<>]{{1,80}}\s{{0,4}}[|-](?=\s))?
    | {_LEVEL}\s{{1,4}}-(?:\s[\w.]{{1,80}}\s-(?=\s))?
    | {_LEVEL}:(?:[\w.]{{1,80}}:)?
    | -\s[\w.]{{1,80}}\s-\s{_LEVEL}\s-
    | \[[\w./-]{{1,80}}\.py:\d{{1,7}}(?::\w{{1,60}})?\]            # DeepSpeed
    | std(?:out|err)[ ][FP](?=\s)                                  # containerd
    | DLL(?=\s) | >>(?=\s) | [|>-](?=\s)
    )\s*""",
    re.VERBOSE,
)
_FIRST = frozenset("[(|>-0123456789IWEFDTNCSs")
_BAR = re.compile(
    r"(?P<name>[^|%]{0,80}?)\s{0,8}\d{1,3}%\|[^|]{0,400}\|\s{0,8}(?P<n>\d{1,12})/(?P<total>\d{1,12})"
    r" \[(?P<inside>[^\]]{0,4000})\]"
)
_US = re.compile(r"(\d\d)/(\d\d)/(\d{4})")
MAX_PREFIXES = 12


@dataclass(frozen=True, slots=True)
class Bar:
    """A tqdm progress bar: what stands before it, count, total, its own text, and whether metrics follow the rate."""

    name: str
    n: int
    total: int
    text: str
    metrics: bool


def clean(raw: bytes) -> str:
    """Return a line as text without colours, cursor movements and backspaces."""
    line = raw.decode("utf-8", "replace")
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    if "\b" in line:
        line = line.replace("\b", "")
    return line.strip()


def strip_prefix(line: str) -> tuple[str, float]:
    """Return the message of a line, and its wall time in seconds since the epoch (NaN if it has none)."""
    time = math.nan
    at = 0
    for _ in range(MAX_PREFIXES):
        if at >= len(line) or line[at] not in _FIRST:
            break
        m = _PREFIX.match(line, at)
        if m is None:
            break
        at = m.end()
        stamp = m["iso"] or (_US.sub(r"\3-\1-\2", m["us"]) if m["us"] else None)
        if stamp is not None:
            time = parse_time(stamp.replace("/", "-")) or time
    return (line[at:] if at else line), time


def take_bar(line: str) -> tuple[Bar | None, str]:
    """Return the progress bar that a line begins with, and what is printed behind it."""
    if "%|" not in line:
        return None, line
    m = _BAR.match(line)
    if m is None:
        return None, line
    bar = Bar(m["name"].strip(), int(m["n"]), int(m["total"]), m[0].strip(), "=" in m["inside"])
    return bar, line[m.end() :].strip()
