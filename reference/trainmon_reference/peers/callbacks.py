"""Callbacks of frameworks that stop a run or lower its rate: Lightning's EarlyStopping, Keras' two."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from trainmon_reference.peers.base import Alarm, LoggedRun, Peer

STOPPED_IMPROVING = ("plateau", "flat", "overfit", "divergence")


@dataclass(frozen=True, kw_only=True)
class EarlyStopping(Peer):
    """Lightning `EarlyStopping(monitor="val_loss")`: it stops the run, so it fires once.

    At the `patience`-th evaluation in a row that isn't lower than the best by more than `min_delta` (a tie is no
    improvement), or at the first that isn't finite (`check_finite`). No warm-up.

    Reads the validation loss. Claims nonfinite, plateau, flat, overfit and divergence.
    """

    name: ClassVar[str] = "Lightning EarlyStopping"
    source: ClassVar[str] = "Lightning-AI/pytorch-lightning, src/lightning/pytorch/callbacks/early_stopping.py"
    reads: ClassVar[tuple[str, ...]] = ("val_loss",)
    claims: ClassVar[tuple[str, ...]] = ("nonfinite", *STOPPED_IMPROVING)

    patience: int = 3
    min_delta: float = 0.0
    check_finite: bool = True

    def alarms(self, run: LoggedRun) -> list[Alarm]:
        """Return the alarm at which the run is stopped, if it is."""
        best, waited = math.inf, 0
        for step, value in run.of("val_loss").each():
            if self.check_finite and not math.isfinite(value):
                return [Alarm(step, ("nonfinite",))]
            if value < best - self.min_delta:
                best, waited = value, 0
                continue
            waited += 1
            if waited >= self.patience:
                return [Alarm(step, STOPPED_IMPROVING)]
        return []


@dataclass(frozen=True, kw_only=True)
class TerminateOnNaN(Peer):
    """Keras `TerminateOnNaN`: the run is stopped at the first batch whose loss is NaN or infinite.

    Reads the training loss. Claims nonfinite.
    """

    name: ClassVar[str] = "Keras TerminateOnNaN"
    source: ClassVar[str] = "keras-team/keras, keras/src/callbacks/terminate_on_nan.py"
    reads: ClassVar[tuple[str, ...]] = ("train_loss",)
    claims: ClassVar[tuple[str, ...]] = ("nonfinite",)

    def alarms(self, run: LoggedRun) -> list[Alarm]:
        """Return the alarm at which the run is stopped, if it is."""
        bad = (step for step, value in run.of("train_loss").each() if not math.isfinite(value))
        return [Alarm(step, self.claims) for step in [next(bad, None)] if step is not None]


@dataclass(frozen=True, kw_only=True)
class ReduceLROnPlateau(Peer):
    """Keras `ReduceLROnPlateau(monitor="val_loss")`: an alarm each time it lowers the rate.

    At the `patience`-th evaluation in a row that isn't lower than the best by more than `min_delta`, then anew. A
    NaN is no improvement. The rate that the log shows isn't changed: a run that this would have helped goes on as
    it went.

    Reads the validation loss. Claims plateau, flat and overfit.
    """

    name: ClassVar[str] = "Keras ReduceLROnPlateau"
    source: ClassVar[str] = "keras-team/keras, keras/src/callbacks/reduce_lr_on_plateau.py"
    reads: ClassVar[tuple[str, ...]] = ("val_loss",)
    claims: ClassVar[tuple[str, ...]] = ("plateau", "flat", "overfit")

    patience: int = 10
    min_delta: float = 1e-4
    cooldown: int = 0

    def alarms(self, run: LoggedRun) -> list[Alarm]:
        """Return an alarm for each time the rate would be lowered."""
        best, waited, cooling, found = math.inf, 0, 0, list[Alarm]()
        for step, value in run.of("val_loss").each():
            if cooling:
                cooling, waited = cooling - 1, 0
            if value < best - self.min_delta:
                best, waited = value, 0
            elif not cooling:
                waited += 1
                if waited >= self.patience:
                    found.append(Alarm(step, self.claims))
                    cooling, waited = self.cooldown, 0
        return found
