"""What loss-spike, grad-spike and grad-explosion share: an excursion above the series' baseline and its life.

An excursion opens when two of the last three reports are above the baseline's threshold (z6 2-of-3: no false
alarm and one report of delay on block-bootstrapped healthy residuals, where 1-of-1 gives .094 a run). It is
measured against the baseline that held when it opened and follows its peak. It has recovered when five reports in a
row are back below half the threshold. One that isn't back after 50 reports is graded (see `recovery`), and again
after 150, when it is over: what it has settled at is the new level.

Every spike says how many there were before it in the run, and the spike score: the share of the reports so far that
lie above the baseline's threshold. It follows OLMo 2's (the percentage of values at least seven standard deviations
from a rolling average of the last 1,000) and OLMo-core's `SpikeScore` (above six, of the last 128), with the robust
baseline of `series.baseline`, which leaves out what it flags, in place of mean and standard deviation.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.episode import Episode, Hit
from trainmon_rules.detectors.recovery import graded, settled
from trainmon_rules.findings import Finding, Recovery, Severity
from trainmon_rules.series import Baseline, Block, Series
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import ordinal, short

HITS, AMONG = 2, 3  # two of the last three reports
CALM = 5  # reports in a row that end an excursion
LASTING = 50  # reports after which one that isn't back is graded
OVER = 150  # reports after which it is the new level and no excursion any more
WEAK = 0.5  # of the threshold: the second hit while the baseline is short
GAP = 2  # calm reports in a row within the first blows of an excursion


class Excursion(Detector):
    """Base of the detectors of excursions; subclasses say when one opens and how it reads."""

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.hits: deque[Hit] = deque(maxlen=AMONG)
        self.episode: Episode | None = None

    # ------------------------------------------------------------------ what subclasses decide
    def opens(self, block: Block, at: int, baseline: Baseline, hits: list[Hit]) -> Severity | None:
        """Return how severe it is if the hits are enough and this is such an excursion."""
        raise NotImplementedError

    def grown(self, block: Block, at: int, episode: Episode) -> Severity | None:
        """Return how severe it is if it became worth another word; called on every report that isn't calm."""
        return None

    def lasting(self, episode: Episode) -> Severity:
        """Return how severe it is now that it has lasted and isn't back."""
        return episode.finding.severity

    def measured(self, baseline: Baseline, peak: Hit) -> tuple[str, dict[str, Any]]:
        """Return what to say of the peak in brackets, and the numbers behind it."""
        raise NotImplementedError

    def natural(self, judged: float) -> float:
        """Return a judged value as it is logged."""
        return judged * (self.series.direction or 1)

    # ------------------------------------------------------------------ the life of an excursion
    def update(self, block: Block) -> Iterable[Finding]:
        """Yield findings as excursions open, grow and end."""
        if self.episode is None and block.start >= 12:
            b = block.baseline
            if b is None:
                return ()
            floor = b.threshold * (WEAK if b.count < 12 else 1.0)
            if not bool(np.any(block.judged - b.level > floor)):
                return ()
        return self._scan(block)

    def _scan(self, block: Block) -> Iterator[Finding]:
        judged = block.judged.tolist()
        for i, y in enumerate(judged):
            if self.episode is not None:
                yield from self._follow(block, i, y)
            elif block.baseline is not None:
                yield from self._look(block, i, y, block.baseline)

    def _look(self, block: Block, i: int, y: float, b: Baseline) -> Iterator[Finding]:
        excess = y - b.level
        if not excess > b.threshold * (WEAK if b.count < 12 else 1.0):
            return
        index = block.start + i
        self.hits.append(Hit(index, int(block.step[i]), float(block.time[i]), float(block.value[i]), excess))
        near = [h for h in self.hits if h.index > index - AMONG]
        several = len(near) > 1
        severity = self.opens(block, i, b, [self._first(near[0], b), *near[1:]] if several else near)
        if severity is not None:
            onset = self._first(near[0], b, GAP) if several else near[0]
            yield self._open(block, i, b, onset, max([onset, *near], key=lambda h: h.excess), severity)

    def _first(self, hit: Hit, b: Baseline, gap: int = 0) -> Hit:
        """Return where it began: the first report above half the threshold, over gaps of at most so many calm ones."""
        ring = self.series.before(hit.index, 16)
        excess = self.series.judged_of(ring.value) - b.level
        first = len(excess)
        for i in np.flatnonzero(excess > WEAK * b.threshold)[::-1].tolist():
            if first - i > gap + 1:
                break
            first = i
        if first == len(excess):
            return hit
        step, time, value = int(ring.step[first]), float(ring.time[first]), float(ring.value[first])
        return Hit(ring.start + first, step, time, value, float(excess[first]))

    def _open(self, block: Block, at: int, b: Baseline, onset: Hit, peak: Hit, severity: Severity) -> Finding:
        reports = block.start + at + 1
        over = block.over_before + int(np.count_nonzero(block.over[: at + 1]))
        number = self._count()
        said: dict[str, Any] = {"spikes so far": number}
        if over:
            said["spike score in percent"] = 100.0 * over / reports
        summary, evidence = self._words(b, peak, number)
        found = self.finding(block, at, summary, evidence | said, onset.step, onset.time, severity)
        self.episode = Episode(b, onset, peak, found, said, reports - onset.index, last_step=int(block.step[at]))
        return found

    def _count(self) -> int:
        """Count one more such spike; return how many there are in all attempts of the run so far."""
        key = f"spikes of {self.rule.name}"
        self.series.shared[key] = 1 + self.series.shared.get(key, 0)
        n = 0
        series: Series | None = self.series
        while series is not None:
            n, series = n + series.shared.get(key, 0), series.older
        return n

    def _follow(self, block: Block, i: int, y: float) -> Iterator[Finding]:
        e = self.episode
        if e is None:
            return
        e.reports += 1
        step = int(block.step[i])
        if not np.isfinite(y):
            return
        excess = y - e.baseline.level
        if excess > e.peak.excess:
            e.peak = Hit(block.start + i, step, float(block.time[i]), float(block.value[i]), excess)
        if excess > WEAK * e.baseline.threshold:
            e.calm, e.last_step = 0, step
            yield from self._goes_on(block, i, e)
            return
        e.calm += 1
        e.calm_since = step if e.calm == 1 else e.calm_since
        if e.calm >= CALM:
            e.reports -= CALM
            yield self._recovered(e)

    def _goes_on(self, block: Block, i: int, e: Episode) -> Iterator[Finding]:
        severity = self.grown(block, i, e)
        if e.reports >= (OVER if e.lasts else LASTING):
            e.lasts = True
            severity = max(severity or e.finding.severity, self.lasting(e))
        if severity is None:
            return
        level = self._level(block.start + i + 1)
        e.finding = self._as_it_is(e, level).changed(severity=severity)
        if e.reports < OVER:
            yield e.finding
            return
        self._close()
        share = f"{100 * e.finding.evidence['share of the rise back']:.0f} % of the rise came back"
        grade = "partly" if e.finding.grade is Recovery.PARTLY else "not"
        new = f"{short(self.natural(level))} is the new level after {OVER} reports"
        yield resolved(e.finding, e.last_step, f"{grade} recovered: {share}, {new}")

    def _recovered(self, e: Episode) -> Finding:
        self._close()
        evidence = {"recovery": str(Recovery.RECOVERED), "reports to recover": e.reports, "share of the rise back": 1.0}
        summary, measured = self._words(e.baseline, e.peak, e.said["spikes so far"])
        found = e.finding.changed(last_step=e.last_step, summary=summary, evidence=measured | e.said | evidence)
        return resolved(found, e.calm_since, f"{self.series.tag} is back at its level after {e.reports} reports")

    def _close(self) -> None:
        self.episode = None
        self.hits.clear()

    # ------------------------------------------------------------------ as it is now
    def standing(self) -> Finding | None:
        """Return the excursion that goes on, with its peak and, once it has lasted, where it stands."""
        e = self.episode
        return None if e is None else self._as_it_is(e, self._level(self.series.count))

    def _level(self, end: int) -> float:
        return settled(self.series.judged_of(self.series.before(end, LASTING).value))

    def _as_it_is(self, e: Episode, level: float) -> Finding:
        """Return the finding with its peak, and with its grade if it has lasted."""
        how = self._grade(e, level) if e.lasts else {}
        summary, evidence = self._words(e.baseline, e.peak, e.said["spikes so far"], how)
        return e.finding.changed(last_step=e.last_step, summary=summary, evidence=evidence | e.said | how)

    def _grade(self, e: Episode, level: float) -> dict[str, Any]:
        start = math.nan
        if not self.series.log:
            first = self.series.judged_of(self.series.first[:5])
            start = median(first[np.isfinite(first)])
        if level <= e.baseline.level:  # it goes up and down still, but nothing is lost
            return {
                "recovery": str(Recovery.RECOVERED),
                "share of the rise back": 1.0,
                "level now": self.natural(level),
            }
        return graded(e.baseline.level, e.baseline.level + e.peak.excess, level, start) | {
            "level now": self.natural(level)
        }

    def _words(
        self, b: Baseline, peak: Hit, number: int, how: Mapping[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Return the sentence and the numbers of an excursion: the `number`-th, graded `how`."""
        brackets, evidence = self.measured(b, peak)
        times = f" for the {ordinal(number)} time in this run" if number > 1 else ""
        then = ""
        if how:
            verbs = {Recovery.PARTLY: "came back only to", Recovery.RECOVERED: "is back below it, at"}
            verb = verbs.get(how["recovery"], "stays at")
            then = f" and {verb} {short(how['level now'])}"
        before = short(evidence["level before"])
        return f"{self.series.tag} jumped from {before} to {short(peak.value)}{times}{then} ({brackets})", evidence
