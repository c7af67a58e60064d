"""oscillation: the training loss is thrown back and forth far more than its batches explain.

What it detects: over the last two stretches of reports (of 8 at first, of 32 in a long log) the loss spans three times
what it spanned in the stretches before, 15 % of all progress made and 2 % of its level; it turns back at least
five times, and is no better than it was. Or it jumps to the other side from report to report (a correlation of
-0.5 between neighbours), which independent batches don't do.

Why it matters: updates that overshoot undo each other. Nothing is gained while it lasts, and it often comes before a
divergence.

Example: a loss of 0.9 ± 0.03 that from one epoch to the next lies anywhere between 0.6 and 1.6.

When it is wrong: batches that are noisy from the start are no oscillation, however noisy, and so it compares the loss
with its own earlier noise, at a level where it had learned already (an untrained network's loss has hardly any). What
grows slowly over thousands of reports isn't seen. A warm restart of the rate is left out; batches that became more
different (other data, longer sequences, a smaller batch) look the same: hence `info`, and a warning only once it has
lasted twice as long and spans a quarter of the progress. One excursion is `loss-spike`. Where there is no calm time
before, only the validation loss can tell (`val-oscillation`).

Fixes: lower the rate 3-10 times; clip the gradient norm; enlarge the batch where it has become the noise.

Source: TheDeepChecker (over 50 % sign changes of the loss' difference) and AUTOTRAINER (swings of the accuracy),
which fire on batch noise too; the comparison with the run's own noise and the progress as the scale are our own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.detectors.schedule import restarted
from trainmon_rules.detectors.swings import Swings, first_level, spans, swings_of
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import FloatArray
from trainmon_rules.series import RELATIVE_FLOOR, RING, Block, Series, View, block_end
from trainmon_rules.series.robust import median, quantile
from trainmon_rules.vocabulary import RunSettings
from trainmon_rules.words import short

STRETCHES = 6  # fewer stretches say nothing about what was usual
TURNS = 5  # changes of direction in the last two stretches
MOSTLY, LOUDER = 0.8, 1.3  # times what four in five of the stretches before didn't reach
SURE = 4.0  # standard errors of the correlation of neighbours
OVER_AGAIN = 2  # stretches more before it is a warning


class Oscillation(Detector):
    """Compares the span of the last two stretches of reports with those before."""

    name: ClassVar[str] = "oscillation"

    @dataclass(frozen=True, slots=True)
    class Params:
        """What it takes.

        `grown` times the usual span, or a correlation of `neighbours` between one report and the next; in either
        case `share` of the progress. A warning needs `sure` of the progress.
        """

        grown: float = 3.0
        neighbours: float = -0.5
        share: float = 0.15
        sure: float = 0.25

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.least = STRETCHES * _stretch(0)
        self.best = math.inf  # lowest level of a stretch
        self.limit = math.inf  # the span that counts as oscillating
        self.opened, self.level = 0, math.nan  # number of points and level when it was said

    def update(self, block: Block) -> Iterator[Finding]:
        """Look at the end of each stretch."""
        end = block.start + len(block)
        if end != block_end(end - 1) or end % _stretch(end):
            return
        width = _stretch(end)
        view = self.series.before(end, width)
        y = view.value[np.isfinite(view.value)]
        if len(y) < 0.75 * width:
            return
        level = median(y)
        self.best = min(self.best, level)
        start = first_level(self.series)
        if not math.isfinite(start):
            return
        least = max(self.params.share * (start - self.best), RELATIVE_FLOOR * abs(level))
        loud = quantile(y, 0.9) - quantile(y, 0.1) >= least
        if self.open is not None:
            yield from self._follow(block, width)
        elif loud:  # else it is quiet, as nearly always
            yield from self._look(block, width, start, least)

    def _finite(self, end: int) -> tuple[View, FloatArray]:
        ring = self.series.before(end, RING)
        keep = np.isfinite(ring.value)
        return View(ring.start, ring.step[keep], ring.time[keep], ring.value[keep], ring.row[keep]), ring.value[keep]

    def _look(self, block: Block, width: int, start: float, least: float) -> Iterator[Finding]:
        view, y = self._finite(block.start + len(block))
        if len(y) < STRETCHES * width:
            return
        level, span = spans(y, width)
        before = level[:-3] <= start - 0.5 * (start - float(level[:-2].min()))  # where it had learned
        now = swings_of(y[-2 * width :], float(span[-2:].min()))
        gained = float(level[:-2].min()) - now.level
        if now.span < least or now.turns < TURNS or gained > now.error(2 * width):
            return
        usual = median(span[:-3][before]) if before.sum() >= 3 else math.inf
        grown = now.span >= max(self.params.grown * usual, LOUDER * quantile(span[:-3], MOSTLY))
        tossed = now.neighbours <= min(self.params.neighbours, -SURE / math.sqrt(2 * width))
        if (not grown and not tossed) or restarted(self.peer("learning_rate", block, len(block) - 1, 4 * width)):
            return
        self.limit = max(least, self.params.grown * usual if grown else 0.0)
        self.opened, self.level = block.start + len(block), now.level
        first = max(2, int((span[::-1] < 0.5 * self.limit).argmax())) * width  # reports since the last calm stretch
        far = np.abs(y[-first:] - median(y[-first - width : -first])) > 0.5 * self.limit
        at = len(y) - first + int(far.argmax())
        words = self._words(now, start, usual if grown else None)
        self.open = self.finding(
            block, len(block) - 1, words["summary"], words["evidence"], int(view.step[at]), float(view.time[at]),
            Severity.INFO,
        )  # fmt: skip
        yield self.open

    def _follow(self, block: Block, width: int) -> Iterator[Finding]:
        """A warning when it has lasted; over when two stretches in a row are calm."""
        found = self.open
        if found is None:
            return
        end, step = block.start + len(block), int(block.step[-1])
        _, y = self._finite(end)
        _, span = spans(y, width)
        if len(span) < 2 or float(span[-2:].max()) < 0.5 * self.limit:
            self.open = None
            yield resolved(found, step, f"calm again by step {step}")
            return
        start = first_level(self.series)
        now = swings_of(y[-2 * width :], float(span[-2:].min()))
        if self.level - now.level > 2 * now.error(2 * width):
            self.open = None
            yield resolved(found, step, f"it learns all the same, by step {step}")
            return
        usual = found.evidence.get("usual swing")
        self.open = found.changed(last_step=step, **self._words(now, start, usual))
        lasted = end - self.opened >= OVER_AGAIN * width
        wide = usual is not None and now.span >= max(self.limit, self.params.sure * (start - self.best))
        if found.severity < self.rule.severity and lasted and wide:
            self.open = self.open.changed(severity=self.rule.severity)
            yield self.open

    def _words(self, now: Swings, start: float, usual: float | None) -> dict[str, Any]:
        evidence: dict[str, Any] = {
            "swing": now.span,
            "level": now.level,
            "turns": now.turns,
            "correlation of neighbours": now.neighbours,
        }
        grown = "jumps to the other side from report to report"
        if usual is not None:
            evidence |= {"usual swing": usual, "times its usual": now.span / max(usual, 1e-12)}
            grown = f"{short(now.span / max(usual, 1e-12), 2)} times its usual swing"
        if start > self.best:
            evidence["share of progress"] = now.span / (start - self.best)
        return {
            "summary": f"{self.series.tag} is thrown back and forth by {short(now.span, 2)} around {short(now.level)} "
            f"({grown}) and gains nothing",
            "evidence": evidence,
        }


def _stretch(end: int) -> int:
    """Return the number of reports of a stretch in a log of that length."""
    return 8 if end < 128 else 16 if end < 256 else 32
