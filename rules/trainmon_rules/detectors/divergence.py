"""divergence: the loss rises and doesn't come back, or keeps rising.

What it detects: the median of the last reports lies above the best level so far by six standard errors, by 12 %
of all progress made and by 2 % of the level, for several looks in a row. Rewards and evaluation metrics are
judged with the sign turned. In very short logs: twice the level of all reports so far, twice among three.

Why it matters: every further step makes the checkpoint worse; the last good one is getting old.

Example: 104B parameters at the end of warm-up: 6.4 → 10.2 within forty iterations, later NaN. Or a policy whose
reward falls from 424 to 9 and stays there.

When it is wrong: a spike that recovers is `loss-spike`; a warm restart lifts the loss for a while (then it is a
warning that resolves). The scale is the run's own progress, not the loss, so that signed losses and language
models work; and the reference is a median over three times as many reports as the test, because the lowest of many
medians is an extreme value. Critical only if half of the progress is lost, or the rise grows on.

Fixes: stop; resume from the checkpoint at the best level with a 3–10 times smaller rate; clip the gradient norm.

Source: a level-shift test on medians, after Marin's floor rule (min of recent > mean of baseline + 6 sigma) and
TheDeepChecker's "twice the minimum so far".
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.schedule import JUMP, restarted
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.robust import mad_sigma, median, quantile
from trainmon_rules.series import Block, Series, block_end


class Divergence(Detector):
    """Level shift of the recent median against the best long median."""

    name: ClassVar[str] = "divergence"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Standard errors, share of progress, share of level; the share of progress lost that is critical."""

        errors: float = 6.0
        progress: float = 0.12
        level: float = 0.02
        critical: float = 0.5

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, facts: dict[str, Any]) -> None:
        super().__init__(rule, series, peer, facts)
        self.best = math.inf  # lowest median of 3m reports that ended at least m reports ago
        self.best_step = 0
        self.start = math.nan  # level at the beginning: median of the first five
        self.medians: deque[tuple[int, int, float]] = deque(maxlen=64)  # (index, step, long median) not yet old
        self.recent: deque[float] = deque(maxlen=16)  # medians of consecutive windows of m: their jumps are the noise
        self.looks = 0
        self.error = math.inf
        self.open: Finding | None = None
        self.peak = -math.inf

    def update(self, block: Block) -> Iterator[Finding]:
        """Look at the end of each block: every report at first, every 64 later."""
        end = block.start + len(block)
        if end < 2 or end != block_end(end - 1):
            return
        at = len(block) - 1
        found = self._short(block, at, end) if end < 12 else self._look(block, at, end)
        if found is not None:
            yield found

    # ------------------------------------------------------------------ few reports
    def _short(self, block: Block, at: int, end: int) -> Finding | None:
        """Fewer than twelve reports: only a doubling of a steady level counts, twice among three, and as a warning."""
        y = self.series.judged_of(self.series.before(end, end).value)
        y = y[np.isfinite(y)]
        signature = self._saturated(block, at)
        if len(y) < 2 or self.open is not None:
            return None
        if signature is not None:
            self.open = self.finding(
                block, at, signature, {"value": float(block.value[at])}, severity=Severity.CRITICAL
            )
            return self.open
        before, last = y[:-3], y[-3:]
        if len(before) < 3 or before.min() <= 0:
            return None
        level, spread = float(np.median(before)), float(before.max() - before.min())
        over = last > max(2 * level, float(before.max()) + 3 * spread)
        if over.sum() < 2 or not over[-1]:
            return None
        self.best, self.best_step = level, int(self.series.before(end - 3, 1).step[-1])
        return self._open(block, at, end, float(last.max()), level, math.inf)

    def _saturated(self, block: Block, at: int) -> str | None:
        """87.3365 is −log of the smallest float: softmax has put nothing on the right class (Caffe)."""
        value = float(block.value[at])
        if self.series.role in ("train_loss", "val_loss") and abs(value - 87.3365) < 2e-4:
            return f"{self.series.tag} is 87.3365, minus the log of the smallest float: the softmax has saturated"
        return None

    # ------------------------------------------------------------------ enough reports
    def _look(self, block: Block, at: int, end: int) -> Finding | None:
        m = 5 if end < 160 else 20
        ring = self.series.before(end, 4 * m + 100)
        y = self.series.judged_of(ring.value)
        good = np.isfinite(y)
        if good[-m:].sum() < max(3, m // 2):
            return None
        self._remember(y, ring.step, m, end)
        now = median(y[-m:][good[-m:]])
        if not math.isfinite(self.best):
            return None
        if self.looks == 0:  # while a rise is being watched, the noise is that from before it
            self.error = self._error(y[: -2 * m][good[: -2 * m]][-100:], m)
        error = self.error
        progress = max(0.0, self.start - self.best) if math.isfinite(self.start) else 0.0
        least = max(self.params.errors * error, self.params.progress * progress, self.params.level * abs(self.best))
        rise = now - self.best
        if self.open is not None:
            return self._follow(block, at, now, rise, least, progress)
        if self._annealed(block, at):
            least = max(least, self.params.critical * progress)
        self.looks = self.looks + 1 if rise > least else 0
        if self.looks < (5 if end < 256 else 3 if end < 1024 else 2):
            return None
        return self._open(block, at, end, now, self.best, progress)

    def _annealed(self, block: Block, at: int) -> bool:
        """Whether the best level belongs to a much lower rate than now: the end of a cycle before a warm restart."""
        rate = self.peer("learning_rate", block, at, 512)
        now, then = rate.finite[-1:], rate.finite_where(rate.step <= self.best_step)[-1:]
        if not len(then):
            return restarted(rate)
        return bool(now[0] > JUMP * then[0]) and restarted(rate)

    def _remember(self, y: FloatArray, step: Any, m: int, end: int) -> None:
        """Keep the long median of now, and let those that are m reports old into the best."""
        if math.isnan(self.start):
            first = self.series.judged_of(self.series.first[:5])
            first = first[np.isfinite(first)]
            self.start = float(np.median(first)) if len(first) else math.nan
        tail = y[-3 * m :]
        tail = tail[np.isfinite(tail)]
        if len(tail) >= 2 * m and self.open is None:
            self.medians.append((end, int(step[-1]), median(tail)))
        while self.medians and self.medians[0][0] <= end - m:
            _, when, level = self.medians.popleft()
            if level < self.best:
                self.best, self.best_step = level, when

    def _error(self, past: FloatArray, m: int) -> float:
        """Standard error of a median of m: from the residuals, and from the jumps between medians of m.

        The second is what keeps autocorrelated series (rewards) quiet.
        """
        if len(past) < m:
            return math.inf if len(past) < 5 else 2.0 * float(np.std(past))
        centre = median(past)
        spread = max(
            mad_sigma(past),
            (quantile(past, 0.9) - centre) / 1.2816,
        )
        blocks = len(past) // m
        medians = np.median(past[len(past) - blocks * m :].reshape(blocks, m), axis=1)
        jumps = 1.05 * median(np.abs(np.diff(medians))) if blocks > 2 else 0.0
        return max(1.25 * spread / math.sqrt(m), jumps)

    # ------------------------------------------------------------------ its life
    def _open(self, block: Block, at: int, end: int, now: float, best: float, progress: float) -> Finding:
        sign = self.series.direction or 1
        self.peak = now
        onset_step, onset_time = self._onset(end, best, now)
        severity = self._severity(now - best, progress)
        words = self._words(now * sign, best * sign, progress)
        self.open = self.finding(block, at, words["summary"], words["evidence"], onset_step, onset_time, severity)
        return self.open

    def _onset(self, end: int, best: float, now: float) -> tuple[int, float]:
        """Date it back to the report after the last one that was nearer to the best level than to this one."""
        ring = self.series.before(end, 256)
        y = self.series.judged_of(ring.value)
        below = np.flatnonzero(y < best + 0.5 * (now - best))
        i = min(int(below[-1]) + 1, len(y) - 1) if len(below) else 0
        return int(ring.step[i]), float(ring.time[i])

    def _severity(self, rise: float, progress: float) -> Severity:
        lost = rise / progress if progress > 0 else math.inf
        return Severity.CRITICAL if lost >= self.params.critical else Severity.WARNING

    def _follow(self, block: Block, at: int, now: float, rise: float, least: float, progress: float) -> Finding | None:
        found = self.open
        if found is None:
            return None
        sign = self.series.direction or 1
        step = int(block.step[at])
        if rise < 0.5 * least:
            self.open, self.looks = None, 0
            return resolved(found.changed(last_step=step), step, f"back at {now * sign:.4g} by step {step}")
        grew = now > self.peak + 0.5 * (self.peak - self.best)
        self.peak = max(self.peak, now)
        severity = max(found.severity, self._severity(self.peak - self.best, progress))
        if grew or severity > found.severity:
            words = self._words(self.peak * sign, self.best * sign, progress)
            self.open = found.changed(severity=severity, last_step=step, **words)
            return self.open
        self.open = found.changed(last_step=step)
        return None

    def _words(self, now: float, best: float, progress: float) -> dict[str, Any]:
        verb = "fell" if now < best else "rose"
        known = 0 < progress < math.inf
        lost = f"; {100 * abs(now - best) / progress:.0f} % of its progress is lost" if known else ""
        return {
            "summary": f"{self.series.tag} {verb} from {best:.4g} (step {self.best_step}) to {now:.4g} "
            f"and has not come back{lost}",
            "evidence": {
                "best level": best,
                "best level at step": self.best_step,
                "level now": now,
                "change": now - best,
                **({"progress before": progress} if known else {}),
            },
        }
