"""divergence: the loss rises and doesn't come back, or keeps rising.

What it detects: the median of the last reports lies above the best level so far by six standard errors, by 12 % of
all progress made and by 2 % of the level, for several looks in a row. Rewards and evaluation metrics are judged
with the sign turned. In very short logs: twice the level of all reports so far, twice among three, or a loss of
87.3365, minus the log of the smallest float.

Why it matters: every further step makes the checkpoint worse; the last good one is getting old.

Example: 104B parameters at the end of warm-up: 6.4 → 10.2 within forty iterations, later NaN. Or a policy whose
reward falls from 424 to 9 and stays there.

When it is wrong: a loss that comes back was a spike, and the finding is then called `loss-spike`; one of which at
least half of the rise came back says so (`recovery: partly`); one that stepped to a level and stays there, short of
half of the progress, is called `regime-shift` until it grows. A warm restart
lifts the loss for a while (then it is a warning that resolves). The scale is the run's own progress, not the loss,
so that signed losses and language models work; and the reference is a median over three times as many reports as
the test, because the lowest of many medians is an extreme value. Critical only once it has lasted and half of the
progress is still lost.

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
from trainmon_rules.detectors.levels import doubled, far_from_start, highest_median, is_saturated, median_error
from trainmon_rules.detectors.recovery import grade, share_back
from trainmon_rules.detectors.schedule import JUMP, restarted
from trainmon_rules.detectors.steps import hold_of, is_step
from trainmon_rules.findings import Finding, Recovery, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.series import RING, Block, Series, block_end
from trainmon_rules.series.robust import jump_sigma, median
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

QUICK, QUICK_LOSS = 5, 16  # reports whose median is enough for a fall off a cliff; a shorter rise of a loss is a spike
SHIFT = "regime-shift"  # what a rise is called that has settled
SHIFTING = ("train_loss", "val_loss", "reward")  # roles that have that symptom
LASTING, LASTING_SHORT = 40, 10  # reports since the onset before it can be critical
NEARLY = 0.95  # share of a rise that must be back for it to be over, where what is left could be noise
NOISE = 32  # training reports that tell its noise
LEVELS_APART = 2.4  # times it: three standard errors of the difference between two medians of five
MARGIN = 0.15  # share of the rise by which it must have risen again to lose its better grade


class Divergence(Detector):
    """Level shift of the recent median against the best long median."""

    name: ClassVar[str] = "divergence"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Thresholds: standard errors, share of progress, share of level.

        `critical` is the share of progress lost that is critical, if the rule `pages` at all.
        """

        errors: float = 6.0
        progress: float = 0.12
        level: float = 0.02
        critical: float = 0.5
        pages: bool = True

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.best = math.inf  # lowest median of 3m reports that ended at least m reports ago
        self.best_step = 0
        self.start = math.nan  # level at the beginning: median of the first five
        self.medians: deque[tuple[int, int, float]] = deque(maxlen=64)  # (index, step, long median) not yet old
        self.recent: deque[float] = deque(maxlen=16)  # medians of consecutive windows of m: their jumps are the noise
        self.looks = 0
        self.quick = QUICK if series.direction < 0 else QUICK_LOSS
        self.error = self.sharp = math.inf  # noise of a median of m and of the quick one, from before a rise is watched
        self.open: Finding | None = None
        self.peak = self.now = -math.inf
        self.onset_index = self.seen = 0  # indices: of the onset, and of the end of what the peak was looked for in
        self.recovery, self.back = Recovery.NOT, 0.0  # its grade, and the share of the rise that it was graded by

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
        """Judge fewer than twelve reports: a signature, or a steady level that doubled (a warning at most)."""
        if self.open is not None:
            return None
        value = float(block.value[at])
        if self.series.role in ("train_loss", "val_loss") and is_saturated(value):
            summary = f"{self.series.tag} is 87.3365, minus the log of the smallest float: the softmax has saturated"
            self.open = self.finding(block, at, summary, {"value": value}, severity=Severity.CRITICAL)
            return self.open
        y = self.series.judged_of(self.series.before(end, end).value)
        level = doubled(y[np.isfinite(y)])
        if level is None:
            return None
        self.best, self.best_step = level, int(self.series.before(end - 3, 1).step[-1])
        return self._open(block, at, end, float(np.nanmax(y[-3:])), level, math.inf)

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
            return self._from_the_start(block, at, end, y[good]) if self.open is None else None
        if self.looks == 0 and self.open is None:  # while a rise is being watched, the noise is that from before it
            past = y[: -2 * m][good[: -2 * m]][-100:]
            self.error, self.sharp = median_error(past, m), median_error(past, self.quick)
        progress = max(0.0, self.start - self.best) if math.isfinite(self.start) else 0.0
        least = max(
            self.params.errors * self.error, self.params.progress * progress, self.params.level * abs(self.best)
        )
        rise = now - self.best
        if self.open is not None:
            return self._follow(block, at, now, rise, least, progress)
        if self._excused(block, at):
            return None
        if self._annealed(block, at):
            least = max(least, self.params.critical * progress)
        elif (quick := median(y[-self.quick :][good[-self.quick :]])) - self.best > max(
            2 * self.params.errors * self.sharp, self._large(progress), 2 * least
        ):
            return self._open(block, at, end, quick, self.best, progress)
        self.looks = self.looks + 1 if rise > least else 0
        if self.looks < (5 if end < 256 else 3 if end < 1024 else 2):
            return None
        return self._open(block, at, end, now, self.best, progress)

    def _from_the_start(self, block: Block, at: int, end: int, y: FloatArray) -> Finding | None:
        """Judge, while there is no best level yet, whether all of it is far worse than the very first reports."""
        late = far_from_start(y, self.params.errors)
        if late is None:
            return None
        self.best, self.best_step = float(y[:5].min()), int(self.series.before(end, end).step[0])
        return self._open(block, at, end, late, self.best, abs(self.best))

    def _excused(self, block: Block, at: int) -> bool:
        """A validation loss that rises while the training loss is no worse is `overfit`, not divergence."""
        if self.series.role != "val_loss":
            return False
        train = self.peer("train_loss", block, at, 512)
        now, then = train.finite[-5:], train.finite_where(train.step <= self.best_step)[-5:]
        if not len(now):
            return False
        then = then if len(then) else train.finite[:5]  # the best is further back than the view
        noise = jump_sigma(np.diff(train.finite[-NOISE:]))
        return float(np.median(now)) <= float(np.median(then)) + noise * LEVELS_APART

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

    # ------------------------------------------------------------------ its life
    def _open(self, block: Block, at: int, end: int, now: float, best: float, progress: float) -> Finding:
        onset_step, onset_time, self.onset_index = self._onset(end, best, now)
        self.best_step = min(self.best_step, onset_step)  # the long median may end a little after the rise began
        self.peak, self.now, self.seen = max(now, self._highest(self.onset_index, end)), now, end
        self.recovery, self.back = Recovery.NOT, share_back(best, self.peak, now)
        self._regrade()
        severity = self._severity(end, progress, now)
        words = self._words(progress)
        self.open = self.finding(block, at, words["summary"], words["evidence"], onset_step, onset_time, severity)
        return self.open

    def _onset(self, end: int, best: float, now: float) -> tuple[int, float, int]:
        """Date it back to the report after the last one that was nearer to the best level than to this one."""
        ring = self.series.before(end, 256)
        y = self.series.judged_of(ring.value)
        below = np.flatnonzero(y < best + 0.5 * (now - best))
        i = min(int(below[-1]) + 1, len(y) - 1) if len(below) else 0
        return int(ring.step[i]), float(ring.time[i]), ring.start + i

    def _level(self, end: int) -> float:
        """Return the median of the last five points before `end`; NaN if none of them is finite."""
        last = self.series.judged_of(self.series.before(end, QUICK).value)
        return median(last[np.isfinite(last)])

    def _highest(self, start: int, end: int) -> float:
        """Return the highest median of five consecutive reports among those from `start` on."""
        return highest_median(self.series.judged_of(self.series.before(end, end - start).value), QUICK)

    def _severity(self, end: int, progress: float, now: float) -> Severity:
        """Critical once it has lasted and is still large."""
        large = now - self.best >= self._large(progress)
        short_wait = end < 160 or self.series.direction < 0
        lasted = end - self.onset_index >= (LASTING_SHORT if short_wait else LASTING)
        return Severity.CRITICAL if self.params.pages and large and lasted else Severity.WARNING

    def _large(self, progress: float) -> float:
        """Return the rise that is large: half of the progress, and no small part of the level either."""
        return max(self.params.critical * progress, self.params.progress * abs(self.best))

    def _follow(self, block: Block, at: int, now: float, rise: float, least: float, progress: float) -> Finding | None:
        found = self.open
        if found is None:
            return None
        step, end = int(block.step[at]), block.start + at + 1
        said, seen, self.seen = self.peak, self.seen, end
        self.peak = max(self.peak, now, self._highest(max(self.onset_index, seen - QUICK), end))
        if rise < 0.5 * least or (rise < least and share_back(self.best, self.peak, now) > NEARLY):
            self.open, self.looks = None, 0
            return self._over(found, step, end, now, progress)
        grew = self.peak > said + 0.5 * (said - self.best)
        last = self._level(end)
        self.now = last if math.isfinite(last) else now
        severity = max(found.severity, self._severity(end, progress, min(now, self.now)))
        self.back = share_back(self.best, self.peak, now)
        regraded = self._regrade()
        symptom = self._called(found, end, severity, grew)
        self.open = found.changed(severity=severity, symptom=symptom, last_step=step, **self._words(progress, symptom))
        changed = (severity, symptom) != (found.severity, found.symptom)
        return self.open if grew or regraded or changed else None

    def _called(self, found: Finding, end: int, severity: Severity, grew: bool) -> str:
        """A loss that settled on a level, short of the start's, has shifted; one that grows or is lost diverges."""
        if self.series.role not in SHIFTING or severity is Severity.CRITICAL or grew:
            return self.rule.symptom
        if found.symptom == SHIFT or end - self.onset_index < hold_of(end):
            return found.symptom
        ring = self.series.before(end, RING)
        at = max(0, self.onset_index - ring.start)
        past, since = (self.series.judged_of(v) for v in (ring.value[:at], ring.value[at:]))
        step = is_step(past[np.isfinite(past)], since[np.isfinite(since)])
        return SHIFT if step is not None and step.size > 0 else found.symptom

    def _regrade(self) -> bool:
        """Grade it by the share of the rise that is back, down only if that is clear; return whether it changed."""
        new = grade(self.back if self.recovery is Recovery.NOT else self.back + MARGIN)
        changed, self.recovery = new is not self.recovery, new
        return changed

    def standing(self) -> Finding | None:
        """Return what goes on, with the level of the last five points."""
        found = self.open
        last = self._level(self.series.count)
        if found is None or not math.isfinite(last) or "level now" not in found.evidence:
            return found
        now = last * (self.series.direction or 1)
        return found.changed(evidence={**found.evidence, "level now": now})

    def _over(self, found: Finding, step: int, end: int, now: float, progress: float) -> Finding:
        """It came back after all; a loss that rises and comes back is a spike."""
        self.recovery, self.back, self.now = Recovery.RECOVERED, 1.0, now
        words = self._words(progress)
        words["evidence"]["reports to recover"] = end - self.onset_index
        words["summary"] += f" and was back by step {step}"
        symptom = "loss-spike" if self.series.role in ("train_loss", "val_loss") else found.symptom
        how = f"{self.series.tag} is back at {short(now * (self.series.direction or 1))} by step {step}"
        return resolved(found.changed(last_step=step, symptom=symptom, **words), step, how)

    def _words(self, progress: float, symptom: str = "") -> dict[str, Any]:
        """Return summary and evidence of the rise as it stands."""
        sign = self.series.direction or 1
        worst, best, now = self.peak * sign, self.best * sign, self.now * sign
        verb = "fell" if worst < best else "rose"
        lost = abs(now - best) / progress if 0 < progress < math.inf else 0.0
        lost = lost if lost <= 1 and self.recovery is not Recovery.RECOVERED else 0.0
        stays = " and stays there" if symptom == SHIFT else " and has not come back"
        then = {Recovery.NOT: stays, Recovery.PARTLY: f" and came back only to about {short(now)}"}
        return {
            "summary": f"{self.series.tag} {verb} from about {short(best)} (its level around step {self.best_step}) "
            f"to about {short(worst)}{then.get(self.recovery, '')}"
            + (f"; {100 * lost:.0f} % of its progress is lost" if lost > 0 else ""),
            "evidence": {
                "best level": best,
                "best level around step": self.best_step,
                "worst level": worst,
                "level now": now,
                "change": worst - best,
                "recovery": str(self.recovery),
                "share of the rise back": self.back,
                **({"share of progress lost": lost} if lost > 0 else {}),
                **({"progress before": progress} if 0 < progress < math.inf else {}),
            },
        }


class ValDivergence(Divergence):
    """The same on validation losses, with the training loss beside them, which may live in another source."""

    name: ClassVar[str] = "val-divergence"
    across: ClassVar[bool] = True
