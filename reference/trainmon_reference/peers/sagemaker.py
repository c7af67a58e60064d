"""Built-in rules of Amazon SageMaker Debugger, with their default parameters.

The code of the built-in rules is closed: this is what their documentation and `rulesconfig` (2021-05) say, on the
numbers of a log in place of the tensors. A rule ends when it fires.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from trainmon_reference.peers.base import Alarm, LoggedRun, Peer

SOURCE = "Amazon SageMaker Debugger, list of built-in rules; awslabs/sagemaker-debugger-rulesconfig (2021-05)"


@dataclass(frozen=True, kw_only=True)
class LossNotDecreasing(Peer):
    """`LossNotDecreasing`: every `num_steps` updates, the loss against the last one at least that far back.

    Fires unless it is lower (by `diff_percent` of it, where that is given). A tie is no decrease; NaN compares False
    and doesn't fire. The validation loss speaks where there is one (the rule's order of modes).

    Reads validation loss, else training loss. Claims flat, slow, plateau and divergence.
    """

    name: ClassVar[str] = "SageMaker LossNotDecreasing"
    source: ClassVar[str] = SOURCE
    reads: ClassVar[tuple[str, ...]] = ("val_loss", "train_loss")
    claims: ClassVar[tuple[str, ...]] = ("flat", "slow", "plateau", "divergence")

    num_steps: int = 10
    diff_percent: float | None = None

    def alarms(self, run: LoggedRun) -> list[Alarm]:
        """Return the alarm, if it fires."""
        points = run.of("val_loss") if len(run.of("val_loss")) else run.of("train_loss")
        if not len(points):
            return []
        steps, judged = points.step, int(points.step[0])
        for number, (step, value) in enumerate(points.each()):
            if step - judged < self.num_steps:
                continue
            judged = step
            far = int(np.searchsorted(steps[:number], step - self.num_steps, "right")) - 1
            before = float(points.value[far])
            if value >= before - abs(before) * (self.diff_percent or 0.0) / 100:
                return [Alarm(step, self.claims)]
        return []


@dataclass(frozen=True, kw_only=True)
class Overfit(Peer):
    """`Overfit`: (validation loss - training loss) / training loss above `ratio_threshold`, `patience` times in a row.

    At each evaluation from `start_step` on, with the mean of the training losses since the one before.

    Reads training and validation loss. Claims overfit.
    """

    name: ClassVar[str] = "SageMaker Overfit"
    source: ClassVar[str] = SOURCE
    reads: ClassVar[tuple[str, ...]] = ("train_loss", "val_loss")
    claims: ClassVar[tuple[str, ...]] = ("overfit",)

    start_step: int = 0
    patience: int = 1
    ratio_threshold: float = 0.1

    def alarms(self, run: LoggedRun) -> list[Alarm]:
        """Return the alarm, if it fires."""
        train, since, above = run.of("train_loss"), 0, 0
        for step, value in run.of("val_loss").each():
            until = int(np.searchsorted(train.step, step, "right"))
            losses, since = train.value[since:until].tolist(), until
            if step < self.start_step or not losses:
                continue
            mean = sum(losses) / len(losses)
            above = above + 1 if mean and (value - mean) / mean > self.ratio_threshold else 0
            if above >= self.patience:
                return [Alarm(step, self.claims)]
        return []


@dataclass(frozen=True, kw_only=True)
class VanishingGradient(Peer):
    """`VanishingGradient`: mean |g| below `threshold`.

    A log holds the norm. The mean of |g| over N parameters is at most norm / √N, which is what is compared; N is 1
    where the log doesn't tell the model's size, and the rule then fires later than it would on tensors.

    Reads the gradient norm. Claims grad-vanishing.
    """

    name: ClassVar[str] = "SageMaker VanishingGradient"
    source: ClassVar[str] = SOURCE
    reads: ClassVar[tuple[str, ...]] = ("grad_norm",)
    claims: ClassVar[tuple[str, ...]] = ("grad-vanishing",)

    threshold: float = 1e-7

    def alarms(self, run: LoggedRun) -> list[Alarm]:
        """Return the alarm, if it fires."""
        most = self.threshold * math.sqrt(max(1, run.parameters))
        return next(([Alarm(step, self.claims)] for step, value in run.of("grad_norm").each() if value < most), [])


@dataclass(frozen=True, kw_only=True)
class StalledTraining(Peer):
    """`StalledTrainingRule`: nothing new for `threshold` seconds, at the last report before the silence.

    In a finished log it is seen only where the run goes on afterwards.

    Reads the wall times of all series. Claims stall.
    """

    name: ClassVar[str] = "SageMaker StalledTrainingRule"
    source: ClassVar[str] = SOURCE
    reads: ClassVar[tuple[str, ...]] = ("train_loss", "val_loss", "grad_norm")
    claims: ClassVar[tuple[str, ...]] = ("stall",)

    threshold: float = 1800.0

    def alarms(self, run: LoggedRun) -> list[Alarm]:
        """Return the alarm, if it fires."""
        pairs = ((t, s) for p in run.series.values() for t, s in zip(p.time.tolist(), p.step.tolist(), strict=True))
        told = sorted(pair for pair in pairs if math.isfinite(pair[0]))
        silent = (step for (time, step), (later, _) in pairwise(told) if later - time > self.threshold)
        return [Alarm(step, self.claims) for step in [next(silent, None)] if step is not None]
