"""A level that stands beyond a limit for good: what `dead-units` and `policy-limit` share.

Judged at block ends from the last reports: three quarters of them must lie beyond the limit. Over when their median
is back inside it by a fifth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.series import RING, Block, Series, block_end
from trainmon_rules.series.robust import median, quantile
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

MOST = 0.75  # share of the reports that must lie beyond the limit
BACK = 0.8  # share of a limit within which a level is back (of a lower limit: one over it)
LARGEST_BLOCK = 256  # reports that may be judged at once
INSIDE = 3  # reports running inside the limit that an onset lies behind


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, in logged units: `above` says on which side of it is bad; what to say, and how severe that is."""

    value: float
    above: bool
    words: str
    severity: Severity

    def beyond(self, values: FloatArray) -> Any:
        """Return which values lie on the bad side."""
        return values > self.value if self.above else values < self.value

    def lasts(self, values: FloatArray) -> bool:
        """Return whether three quarters of the values lie there."""
        return bool(quantile(values, 1 - MOST) > self.value if self.above else quantile(values, MOST) < self.value)

    def is_back(self, level: float) -> bool:
        """Return whether a level lies clearly on the good side."""
        if self.above:
            return level < self.value - (1 - BACK) * abs(self.value)
        return level > self.value + (1 / BACK - 1) * abs(self.value)


class Lasting(Detector):
    """Watches limits that a subclass gives; its parameter `reports` is the number of reports behind a level."""

    name: ClassVar[str] = ""

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.open: Finding | None = None
        self.limit: Limit | None = None  # that of the open finding
        self.least = self.params.reports

    def limits(self, block: Block, values: FloatArray) -> Iterable[Limit]:
        """Return the limits that hold now, the most severe first; `values` are the last finite reports."""
        raise NotImplementedError

    def past(self, end: int, n: int) -> FloatArray:
        """Return the finite ones of `n` reports that ended before anything could be judged that is judged now."""
        gap = min(LARGEST_BLOCK, max(self.params.reports, end // 4))
        return self.series.before(max(0, end - gap), n).finite

    def evidence(self, level: float, limit: Limit) -> dict[str, Any]:
        """Return the numbers behind a finding."""
        return {"level now": level, "limit": limit.value}

    def words(self, level: float, limit: Limit) -> str:
        """Return the finding in a sentence."""
        return f"{self.series.tag} {limit.words.format(level=short(level))}"

    def update(self, block: Block) -> Iterable[Finding]:
        """Look at the end of each block."""
        end = block.start + len(block)
        return self._look(block, end) if end == block_end(end - 1) else ()

    def _look(self, block: Block, end: int) -> Iterator[Finding]:
        values = self.series.before(end, 2 * self.params.reports).finite[-self.params.reports :]
        if len(values) < self.params.reports:
            return
        level, step = median(values), int(block.step[-1])
        if self.open is not None and self.limit is not None and self.limit.is_back(level):
            yield resolved(self.open, step, f"it is {short(level)} by step {step}")
            self.open = self.limit = None
            return
        worse = next((x for x in self.limits(block, values) if x.lasts(values)), None)
        if self.open is not None:
            yield from self._follow(block, level, worse)
        elif worse is not None:
            onset, time = self._onset(end, worse)
            self.limit = worse
            words, evidence = self.words(level, worse), self.evidence(level, worse)
            self.open = self.finding(block, len(block) - 1, words, evidence, onset, time, worse.severity)
            yield self.open

    def _follow(self, block: Block, level: float, worse: Limit | None) -> Iterator[Finding]:
        found, limit = self.open, self.limit
        if found is None or limit is None:
            return
        grave = worse is not None and worse.severity > found.severity
        if worse is not None and grave:
            limit = self.limit = worse
        self.open = found.changed(
            severity=limit.severity if grave else found.severity,
            summary=self.words(level, limit),
            evidence=self.evidence(level, limit),
            last_step=int(block.step[-1]),
        )
        if grave:
            yield self.open

    def _onset(self, end: int, limit: Limit) -> tuple[int, float]:
        """The report behind the last three running that lie inside the limit, as far back as the ring goes."""
        view = self.series.before(end, RING)
        inside = ~np.isfinite(view.value) | ~limit.beyond(view.value)
        runs = np.flatnonzero(inside[2:] & inside[1:-1] & inside[:-2])
        first = min(int(runs[-1]) + INSIDE, len(view) - 1) if len(runs) else 0
        return int(view.step[first]), float(view.time[first])
