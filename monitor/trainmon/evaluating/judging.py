"""What became of one run: which of its alarms is a hit, which a false alarm, and how late the hit came."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from trainmon.evaluating.alarms import Alarm
from trainmon.evaluating.traces import Trace

SENT = ("critical", "warning", "alarm")
"""Severities that count. An `info` is sent to nobody: it is neither a hit nor a false alarm, and told beside."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the alarms of one contestant on one run.

    Attributes
    ----------
    trace : Trace
        The run.
    judged : tuple of (Alarm, str)
        Each alarm with `hit`, `tolerated`, `false` or `note`.
    hit : Alarm or None
        The first hit.
    """

    trace: Trace
    judged: tuple[tuple[Alarm, str], ...]
    hit: Alarm | None

    @property
    def false(self) -> list[Alarm]:
        """The false alarms."""
        return [alarm for alarm, word in self.judged if word == "false"]

    @property
    def noted(self) -> bool:
        """Whether a note would have been a hit."""
        return any(a.severity == "info" and _word(a, self.trace) == "hit" for a, _ in self.judged)

    @property
    def delay_steps(self) -> int | None:
        """Steps from the onset to the hit; 0 for one that is a report early."""
        return None if self.hit is None else max(0, self.hit.step - self.trace.labelled.onset)

    @property
    def delay_rows(self) -> int | None:
        """Logged steps after the onset up to the hit: 1 is the first report that can show anything."""
        if self.hit is None:
            return None
        onset = self.trace.labelled.onset
        return int(np.count_nonzero((self.trace.rows > onset) & (self.trace.rows <= self.hit.step)))

    @property
    def lead(self) -> int | None:
        """Steps from the hit to the first training loss that isn't finite; None without either."""
        if self.hit is None or self.trace.nonfinite is None:
            return None
        return self.trace.nonfinite - self.hit.step

    @property
    def asked(self) -> bool:
        """Whether the hit asks a question."""
        return self.hit is not None and bool(self.hit.asks)

    @property
    def right_question(self) -> bool:
        """Whether the hit asks for what it is right to ask for."""
        return self.hit is not None and not set(self.hit.asks).isdisjoint(self.trace.labelled.truth.questions)

    @property
    def right_route(self) -> bool | None:
        """Whether the hit's primary route is a right one; None where there is no hit or the truth names no route."""
        truth = self.trace.labelled.truth
        if self.hit is None or not (truth.routes or truth.questions):
            return None
        return self.hit.route in truth.routes


def judge(trace: Trace, alarms: Iterable[Alarm]) -> Verdict:
    """Judge the alarms of one contestant on a run.

    On a healthy run an alarm is false, unless all that it may be of is tolerated there (`also`). On a faulty one
    it is false before the onset (less one report); from then on it is a hit if any of its symptoms is one of the
    truth's, tolerated if any is in `also`, else false.
    """
    judged = [(a, _word(a, trace) if a.severity in SENT else "note") for a in sorted(alarms, key=lambda a: a.step)]
    return Verdict(trace, tuple(judged), next((a for a, word in judged if word == "hit"), None))


def _word(alarm: Alarm, trace: Trace) -> str:
    truth = trace.labelled.truth
    if trace.labelled.healthy:
        return "tolerated" if set(alarm.symptoms) <= set(truth.also) else "false"
    if alarm.step < trace.since:
        return "false"
    if not set(alarm.symptoms).isdisjoint(truth.symptoms):
        return "hit"
    return "false" if set(alarm.symptoms).isdisjoint(truth.also) else "tolerated"
