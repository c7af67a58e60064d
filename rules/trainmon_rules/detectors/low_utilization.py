"""low-utilization: the GPU waits.

What it detects: GPU use whose median over 30 samples stays below 50 % for ten minutes (120 samples where there are no
wall times) in which training reports come; or a loader that is waited for during more than 40 % of a step for as
long. With several GPUs none of them may be busy; one that idles among busy ones is an `info`.

Why it matters: whatever else is tuned, the time is lost before the GPU begins; it is the cheapest speed there is.

Example: GPU use of 31 % while data time is 0.9 s of steps of 1.3 s: the loader has two workers.

When it is wrong: a small model on a large GPU can't fill it. Where rewards are logged it is `info`, as an environment
on the CPU often sets the pace there. GPU use counts any kernel, so 100 % may still be slow. 50 to 80 % isn't judged.
System metrics list all GPUs of a machine, of which a job may use one: idle ones say nothing unless most are busy.

Fixes: profile a few steps; more loader workers, pinned memory, prefetching, fewer and larger files; move
preprocessing and augmentation out of the loop or onto the GPU.

Source: the GPU utilisation table of the skill using-training-optimization; SageMaker Debugger's LowGPUUtilization.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules import units
from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import BoolArray, FloatArray
from trainmon_rules.series import Block, Series, View, block_end
from trainmon_rules.series.robust import median
from trainmon_rules.vocabulary import RunSettings

TRAINING = ("train_loss", "rl_loss", "reward")  # what shows that training goes on
SAMPLES = 30  # behind a median
SECONDS, UNTIMED = 600.0, 120  # how long it must last: by wall time, else in samples
BACK = 5.0  # percent beyond the threshold at which it is over
USED, IDLE = 5.0, 10.0  # percent: below, a GPU isn't the job's; below, it idles
KNOWN = 128  # samples that tell percent from 0 to 1


class LowUtilization(Detector):
    """A median below the table's threshold, for long enough."""

    name: ClassVar[str] = "low-utilization"
    across: ClassVar[bool] = True

    @dataclass(frozen=True, slots=True)
    class Params:
        """Percent of GPU use below which it is low, and percent of a step spent waiting for data that is much."""

        idle: float = 50.0
        waiting: float = 40.0

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.begun = -1  # index from which training was going on
        self.since: tuple[int, int, float] | None = None  # index, step and time from which it has been low
        self.judged = False
        self.alone = True  # whether what is said is about this series only

    def blind(self) -> str:
        """Return what is missing to judge."""
        if self.judged:
            return ""
        if self.begun < 0:
            return "no training loss beside it"
        if self.series.role == "data_time":
            return "no step time in the same unit beside the data time"
        return f"fewer than {SAMPLES} samples, or nobody can tell their unit"

    def update(self, block: Block) -> Iterator[Finding]:
        """Look at the end of each block."""
        end, at = block.start + len(block), len(block) - 1
        if end != block_end(end - 1):
            return
        if self.begun < 0:
            self.begun = end if self._trains(block, at) else -1
            return
        recent = self.series.before(end, min(KNOWN, end - self.begun))
        share = self._percent(block, at, recent)
        if len(share) < SAMPLES:
            return
        self.judged = True
        last = share[-SAMPLES:]
        now = median(last)
        if self.open is not None:
            yield from self._follow(block, at, now)
        elif not self._is_bad(now):
            self.since = None
        elif self.since is None:
            n = _newest(self._is_bad(last))
            self.since = (end - n, int(recent.step[-n]), float(recent.time[-n]))
        elif self._lasts(block, at):
            yield from self._say(block, at, now)

    @property
    def is_gpu(self) -> bool:
        """Whether this is GPU use, which should be high, and not waiting, which should be low."""
        return self.series.role == "gpu_util"

    def _is_bad(self, percent: Any) -> Any:
        """Whether a level, or each of an array, is on the bad side."""
        return percent < self.params.idle if self.is_gpu else percent > self.params.waiting

    # ------------------------------------------------------------------ what is measured
    def _trains(self, block: Block, at: int) -> bool:
        return any(len(self.peer(role, block, at, 2)) == 2 for role in TRAINING)

    def _percent(self, block: Block, at: int, recent: View) -> FloatArray:
        """Return the samples in percent; none where that can't be told."""
        if self.series.role != "data_time":
            return as_percent(recent, self.series.tag)
        whole = self.peer("step_time", block, at, len(recent))
        _, own, other = np.intersect1d(recent.step, whole.step, return_indices=True)
        with np.errstate(all="ignore"):
            share = recent.value[own] / whole.value[other]
        share = share[np.isfinite(share) & (share >= 0)]
        if len(share) < SAMPLES or median(share) > 1.5:  # milliseconds against seconds
            return np.zeros(0)
        return np.minimum(share, 1.0) * 100.0

    def _lasts(self, block: Block, at: int) -> bool:
        """Whether it has been low for long, and training went on: not an evaluation, nor a pause."""
        if self.since is None:
            return False
        index, step, time = self.since
        lasted = float(block.time[at]) - time
        timed = math.isfinite(lasted)
        if lasted < SECONDS if timed else block.start + at - index < UNTIMED:
            return False
        half = self.series.before(block.start + at, UNTIMED // 2).step[0]
        for view in (self.peer(role, block, at, SAMPLES) for role in TRAINING):
            fresh = view.time > block.time[at] - SECONDS / 2 if timed else view.step > half
            if fresh.any() and int((view.time > time if timed else view.step > step).sum()) > 1:
                return True
        return False

    # ------------------------------------------------------------------ what is said
    def _say(self, block: Block, at: int, now: float) -> Iterator[Finding]:
        others = self.peer.every("gpu_util", block, at, SAMPLES) if self.is_gpu else []
        use = {tag: median(p) for tag, v in others if len(p := as_percent(v, tag))}
        busy = sum(u >= self.params.idle for u in use.values())
        mild = busy or len(self.peer("reward", block, at, 1))
        severity = min(Severity.INFO, self.rule.severity) if mild else self.rule.severity
        if busy and not (now < IDLE and 2 * busy > len(use)):
            return
        if not busy:
            used = {tag: u for tag, u in use.items() if u >= USED} or use
            if self.is_gpu and next(iter(used), self.series.tag) != self.series.tag:
                return  # another one speaks for all
            use = used
        _, step, time = self.since or (0, 0, math.nan)
        words = self._words(now, use, busy)
        self.alone = not busy and len(use) < 2
        self.open = self.finding(block, at, words["summary"], words["evidence"], step, time, severity)
        yield self.open

    def _follow(self, block: Block, at: int, now: float) -> Iterator[Finding]:
        found = self.open
        if found is None:
            return
        over = now >= self.params.idle + BACK if self.is_gpu else now <= self.params.waiting - BACK
        if not over:
            words = self._words(now, {}, 0) if self.alone else {"evidence": self._evidence(now)}
            self.open = found.changed(last_step=int(block.step[at]), **words)
            return
        self.open = self.since = None
        what = f"GPU utilisation is {now:.0f} %" if self.is_gpu else f"waiting takes {now:.0f} % of a step"
        yield resolved(found, int(block.step[at]), what)

    def _evidence(self, now: float) -> dict[str, Any]:
        return {"GPU utilization percent" if self.is_gpu else "waiting percent": now}

    def _words(self, now: float, use: dict[str, float], busy: int) -> dict[str, Any]:
        since = f"since step {self.since[1]}" if self.since else ""
        if not self.is_gpu:
            text = f"{now:.0f} % of a step is waiting for data {since}"
        elif busy:
            text = f"{self.series.tag} is idle ({now:.0f} %) while {busy} other GPUs are busy {since}"
        elif len(use) > 1:
            low, high = min(use.values()), max(use.values())
            text = f"GPU utilisation is {low:.0f} to {high:.0f} % on {len(use)} GPUs {since}"
        else:
            text = f"GPU utilisation is only {now:.0f} % {since}"
        return {"summary": text, "evidence": self._evidence(now)}


def as_percent(view: View, tag: str) -> FloatArray:
    """Return the finite, not negative samples of a view in percent; none where nobody can tell their unit."""
    share = units.percent(view.finite_where(view.value >= 0), tag)
    return np.zeros(0) if share is None else share


def _newest(bad: BoolArray) -> int:
    """Return since how many samples it is bad: the end in which bad ones outnumber the others most."""
    return len(bad) - int(np.cumsum(np.where(bad, 1, -1)[::-1])[::-1].argmax())
