"""loss-scale-collapse: the mixed-precision loss scale halves away without growing back.

What it detects: four or more falls within twenty reports after the scale had settled; four falls down to 16 or
less; a scale of 1/1000 or less; updates skipped three times running at a scale of 1 or less; or more than 24 falls
without settling.

Why it matters: every fall is a skipped update caused by a non-finite gradient. When the scale can't fall any
further, gradients underflow or every step is skipped: the run is dead, though its loss may still look alive.

Example: fairseq 0.25 → 0.125 → … → 0.00012 in twelve lines, then "Minimum loss scale reached". GLM-130B's scale
collapsed thirty steps before its loss did.

It is over when the scale has stood still for twenty reports at more than 16, or grows again.

When it is wrong: every fp16 run begins with a search: up to fifteen falls in the first steps, from 2^32 to 2^17
say, and later a single fall every few hundred steps, made up for by a rise. Both are healthy, also in a log that
looks so rarely that it sees nothing but falls and rises: a rise takes back a fall. A loss scale printed as 0 is a
rounded number, not a scale.

Fixes: bf16 instead of fp16; clip; lower the rate; look for the first non-finite activation. Precision, not the
learning-rate schedule, is the place to look first.

Source: fairseq's minimum loss scale (1e-4); the trend rule is ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.series import Block, Series
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short


class LossScaleCollapse(Detector):
    """Counts falls of the scale after it has settled."""

    name: ClassVar[str] = "loss-scale-collapse"

    @dataclass(frozen=True, slots=True)
    class Params:
        """`falls` within `window` reports after `settle` reports without one; `low`: the scale that needs no settling.

        `young` reports of the loss settle it too. `dead` is the scale at or below which nothing is left, `stuck` the
        skipped updates in a row at a scale of at most 1, `endless` the falls without settling.
        """

        falls: int = 4
        window: int = 20
        settle: int = 20
        young: int = 30
        low: float = 16.0
        dead: float = 1e-3
        stuck: int = 3
        endless: int = 24

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.last = float("nan")
        self.settled = False
        self.quiet = 0  # reports since the last fall
        self.total = 0  # falls since the scale last settled
        self.fell = 0  # falls of the collapse that goes on
        self.falls: deque[tuple[int, int, float]] = deque(maxlen=64)  # (index, step, scale before)
        self.stuck = 0
        self.skips = float("nan")
        self.open: Finding | None = None

    def update(self, block: Block) -> Iterable[Finding]:
        """Yield a finding when the scale collapses, and when it has grown back."""
        value = block.value
        steady = bool(((value == self.last) | (value == 0.0)).all()) and self.open is None and self.last > 1.0
        if steady:
            self._rest(int((value == self.last).sum()))
            return ()
        return self._scan(block)

    def _rest(self, reports: int) -> None:
        self.quiet += reports
        if self.quiet >= self.params.settle:
            self.settled, self.total = True, 0

    def _scan(self, block: Block) -> Iterator[Finding]:
        for i, scale in enumerate(block.value.tolist()):
            if not np.isfinite(scale) or scale == 0.0:  # 0 is a rounded number, not a scale
                continue
            step, index = int(block.step[i]), block.start + i
            if scale < self.last:
                self.falls.append((index, step, self.last))
                self.quiet = 0
                self.total += 1
                self.fell += 1
            else:
                self._rest(1)
            grown = scale > self.last
            if grown and self.falls:  # a rise makes up for a fall
                self.falls.pop()
                self.total = max(0, self.total - 1)
            self.stuck = self.stuck + 1 if scale <= 1.0 and scale == self.last and self._skipped(block, i) else 0
            self.last = scale
            yield from self._judge(block, i, scale, grown)

    def _skipped(self, block: Block, i: int) -> bool:
        """Whether the count of skipped updates went up since the last report."""
        count = self.peer("skipped_steps", block, i, 2).value
        return len(count) == 2 and bool(count[1] > count[0])

    def _judge(self, block: Block, i: int, scale: float, grown: bool) -> Iterator[Finding]:
        if self.open is not None:
            healthy = scale > self.params.low or (grown and scale > self.params.dead)
            if healthy and self.quiet >= self.params.settle:
                step, found = int(block.step[i]), self._as_it_is(self.open)
                how = "grows again" if grown else "has settled"
                yield resolved(found.changed(last_step=step), step, f"the scale {how} ({short(scale)})")
                self.open = None
            elif self.quiet == 0:
                yield from self._worse(block, i, scale)
            return
        if len(self.falls) >= self.params.falls and not self.settled:
            # Some logs speak of the scale only when it falls; the loss then tells that the start is long over.
            self.settled = len(self.peer("train_loss", block, i, self.params.young)) >= self.params.young
        why, severity = self._why(block.start + i, scale)
        if why:
            first = self._first(block.start + i)
            step = int(block.step[i]) if first is None else first[1]
            start = self.last if first is None else first[2]
            self.fell = sum(1 for f in self.falls if f[0] > block.start + i - self.params.window)
            self.open = self.finding(block, i, why, self._evidence(start, scale), step, severity=severity)
            yield self.open

    def _first(self, index: int) -> tuple[int, int, float] | None:
        """The first fall of the present series of falls."""
        near = [f for f in self.falls if f[0] > index - self.params.window]
        return near[0] if near else None

    def _why(self, index: int, scale: float) -> tuple[str, Severity]:
        p = self.params
        falls = sum(1 for f in self.falls if f[0] > index - p.window)
        tag, start = self.series.tag, (self._first(index) or (0, 0, scale))[2]
        if scale <= p.dead:
            return (
                f"{tag} is down to {short(scale, 3)}: gradients underflow or every update is skipped",
                Severity.CRITICAL,
            )
        if self.stuck >= p.stuck:
            return f"{tag} is stuck at {short(scale, 3)} and every update is skipped", Severity.CRITICAL
        if falls >= p.falls and scale <= p.low:
            return f"{tag} fell {falls} times, from {short(start)} to {short(scale)}", Severity.CRITICAL
        if falls >= p.falls and self.settled:
            return (
                f"{tag} fell {falls} times within {p.window} reports, from {short(start)} to {short(scale)}",
                self.rule.severity,
            )
        if self.total > p.endless:
            return f"{tag} has fallen {self.total} times without settling (now {short(scale)})", self.rule.severity
        return "", self.rule.severity

    def _worse(self, block: Block, i: int, scale: float) -> Iterator[Finding]:
        found = self.open
        if found is None:
            return
        why, severity = self._why(block.start + i, scale)
        start = float(found.evidence["scale before"])
        changed = found.changed(last_step=int(block.step[i]), evidence=self._evidence(start, scale))
        self.open = changed
        if why and severity > found.severity:
            self.open = changed.changed(severity=severity, summary=why)
            yield self.open

    def standing(self) -> Finding | None:
        """Return the collapse that goes on, with the scale as it is now."""
        return None if self.open is None else self._as_it_is(self.open)

    def _as_it_is(self, found: Finding) -> Finding:
        start = float(found.evidence["scale before"])
        summary = found.summary
        if " times" in summary:
            summary = f"{self.series.tag} fell {self.fell} times, from {short(start)} to {short(self.last)}"
        return found.changed(evidence=self._evidence(start, self.last), summary=summary)

    def _evidence(self, start: float, scale: float) -> dict[str, Any]:
        return {"scale before": start, "scale now": scale, "falls": self.fell}
