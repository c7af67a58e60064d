"""What loss-spike, grad-spike and grad-explosion share: an excursion above the series' baseline and its life.

An excursion opens when two of the last three reports are above the baseline's threshold (z6 2-of-3: no false
alarm and one report of delay on block-bootstrapped healthy residuals, where 1-of-1 gives .094 a run). It is
measured against the baseline that held when it opened, follows its peak, and closes when five reports in a
row are back below half the threshold, or after 150 reports, when it is the new level.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.findings import Finding
from trainmon_rules.series import Baseline, Block, Series
from trainmon_rules.vocabulary import RunSettings

HITS, AMONG = 2, 3  # two of the last three reports
CALM = 5  # reports in a row that end an excursion
LASTING = 150  # reports after which it is the new level and no excursion any more
WEAK = 0.5  # of the threshold: the second hit while the baseline is short


@dataclass(slots=True)
class Hit:
    """One report above the threshold."""

    index: int
    step: int
    time: float
    value: float
    excess: float


@dataclass(slots=True)
class Episode:
    """An open excursion: the baseline it is measured against, its peak, and how it goes on."""

    baseline: Baseline
    onset: Hit
    peak: Hit
    finding: Finding
    reports: int = 1  # since the onset
    calm: int = 0
    calm_since: int = 0  # step
    last_step: int = 0


class Excursion(Detector):
    """Base of the detectors of excursions; subclasses say when one opens and how it reads."""

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.hits: deque[Hit] = deque(maxlen=AMONG)
        self.episode: Episode | None = None

    # ------------------------------------------------------------------ what subclasses decide
    def opens(self, block: Block, at: int, baseline: Baseline, hits: list[Hit]) -> Finding | None:
        """Return the finding if the hits are enough and this is such an excursion."""
        raise NotImplementedError

    def grown(self, block: Block, at: int, episode: Episode) -> Finding | None:
        """Return the changed finding if the excursion became worth another word; called on every report."""
        return None

    def back(self, episode: Episode) -> str:
        """Say how it ended."""
        return f"back to its level after {episode.reports} reports"

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
        near = [self._dated_back(near[0], b), *near[1:]] if len(near) > 1 else near
        found = self.opens(block, i, b, near)
        if found is not None:
            peak = max(near, key=lambda h: h.excess)
            self.episode = Episode(b, near[0], peak, found, index - near[0].index + 1, 0, int(block.step[i]))
            yield found

    def _dated_back(self, first: Hit, b: Baseline) -> Hit:
        """The excursion began with the first of the consecutive reports above half the threshold."""
        ring = self.series.before(first.index, 16)
        y = self.series.judged_of(ring.value)
        calm = np.flatnonzero(~(y - b.level > WEAK * b.threshold))
        i = int(calm[-1]) + 1 if len(calm) else 0
        if i == len(y):
            return first
        return Hit(ring.start + i, int(ring.step[i]), float(ring.time[i]), first.value, first.excess)

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
            changed = self.grown(block, i, e)
            if changed is not None:
                e.finding = changed
                yield changed
            if e.reports >= LASTING:
                yield self._close(e, step, f"not back after {LASTING} reports; taken as the new level")
            return
        e.calm += 1
        e.calm_since = step if e.calm == 1 else e.calm_since
        if e.calm >= CALM:
            e.reports -= CALM
            yield self._close(e, e.calm_since, self.back(e))

    def _close(self, e: Episode, step: int, how: str) -> Finding:
        self.episode = None
        self.hits.clear()
        return resolved(e.finding.changed(last_step=e.last_step, **self.describe(e)), step, how)

    def standing(self) -> Finding | None:
        """Return the excursion that goes on, with its peak."""
        e = self.episode
        return None if e is None else e.finding.changed(last_step=e.last_step, **self.describe(e))

    def describe(self, e: Episode) -> dict[str, Any]:
        """Return summary and evidence as of now."""
        return {"summary": e.finding.summary, "evidence": e.finding.evidence}
