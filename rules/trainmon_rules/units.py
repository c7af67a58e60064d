"""Units that logs leave unsaid: told from a tag's words, else from the size of its numbers, else not known.

Frameworks log one quantity in several units: step times in seconds or milliseconds, GPU use in percent or 0 to 1,
memory in bytes, MB, GB or percent. Rules that compare a series with its own past don't care; what needs a second
quantity (a capacity, a threshold in percent, a length of time) asks here, and gets None rather than a guess.
"""

from __future__ import annotations

import re

from trainmon_rules.points import FloatArray
from trainmon_rules.roles.tags import plain

PERCENT = "%"
GIGABYTES = {"b": 2.0**-30, "bytes": 2.0**-30, "kb": 2.0**-20, "kib": 2.0**-20, "mb": 2.0**-10, "mib": 2.0**-10,
    "gb": 1.0, "gib": 1.0, "tb": 1024.0, "tib": 1024.0}  # fmt: skip
MANY_BYTES = 2e7  # 20 MB: no run reports less in bytes, none 20 TB in MB
MANY_MEGABYTES = 512.0  # a GPU with so many GB is far off, one with fewer MB too
LONG_STEP = 30.0  # a step of so many seconds is rare, one of so many milliseconds usual

_PERCENT_WORDS = {"pct", "percent", "percentage"}
_WANDB_PERCENT = re.compile(r"(^|_)gpu_\d+_memory_allocated$")


def words(tag: str) -> set[str]:
    """Return the words of a tag, in lower case."""
    return set(re.split(r"[_/]", plain(tag)))


def seconds(tag: str, typical: float) -> float:
    """Return how many seconds one unit of a step time is; a guess by size where the tag doesn't say.

    Parameters
    ----------
    tag : str
        The metric's name as logged.
    typical : float
        A usual value of it.
    """
    said = words(tag)
    if said & {"ms", "msec", "millis", "milliseconds"}:
        return 1e-3
    if said & {"s", "sec", "secs", "second", "seconds"}:
        return 1.0
    return 1e-3 if typical >= LONG_STEP else 1.0


def percent(values: FloatArray, tag: str) -> FloatArray | None:
    """Return shares in percent, whether they were logged so or as 0 to 1; None where nobody can tell.

    Parameters
    ----------
    values : float64 array, shape (n,)
        Finite values, as many as are known.
    tag : str
        The metric's name as logged.
    """
    top = float(values.max(initial=0.0))
    if words(tag) & _PERCENT_WORDS or 1.0 < top <= 150.0:
        return values
    if top > 150.0:
        return None
    whole = bool((values == values.round()).all())
    if whole and top == 1.0:  # 1 % or all of it
        return None
    return values * 100.0


def memory_unit(tag: str, typical: float) -> float | str | None:
    """Return the gigabytes that one unit of a memory metric is, `PERCENT`, or None where nobody can tell.

    Parameters
    ----------
    tag : str
        The metric's name as logged.
    typical : float
        A usual value of it.
    """
    said = words(tag)
    if said & _PERCENT_WORDS or _WANDB_PERCENT.search(plain(tag)):
        return PERCENT
    for word in said & GIGABYTES.keys():
        return GIGABYTES[word]
    if {"dcgm", "fb"} <= said:  # frame buffer, in MiB
        return GIGABYTES["mb"]
    if typical >= MANY_BYTES:
        return GIGABYTES["bytes"]
    return GIGABYTES["mb"] if typical >= MANY_MEGABYTES else None
