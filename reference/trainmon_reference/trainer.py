"""The trainer: one loop that reads top to bottom.

Forward and backward over micro-batches, unscale, clip, step, schedule, report; then validation, early stopping,
checkpoint. Faults are asked at each point where something can go wrong.

After the training-loop anatomy and the recipes of the two source documents (see `sheets/training-loop-architecture`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import nn

from trainmon_reference import counters
from trainmon_reference.checkpoint import Checkpoint
from trainmon_reference.choices.optimizers import backward, build_optimizer, set_mode
from trainmon_reference.choices.regularization import penalty
from trainmon_reference.choices.schedules import RateSchedule
from trainmon_reference.clock import CHECKPOINT, EVALUATION, Clock
from trainmon_reference.config import RunConfig
from trainmon_reference.faults.base import Fault
from trainmon_reference.loader import Loader
from trainmon_reference.probe import Probe
from trainmon_reference.record import Record
from trainmon_reference.tasks import build_task
from trainmon_reference.tasks.base import Batch

VALIDATION = {
    "train_loss": "val_loss",
    "loss_component": "val_loss_component",
    "train_metric": "eval_metric",
    "train_error": "eval_error",
}
"""What a role is called when it is measured on validation data; others keep their name."""

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Trainer:
    """One run.

    Parameters
    ----------
    config : RunConfig
        All of it.
    faults : sequence of Fault
        What goes wrong.
    clock : Clock, optional
        The run's time; a fresh one by default.
    probe : bool
        Also report activations: the share of dead units and their scale.

    Attributes
    ----------
    step : int
        Updates made.
    checkpoint : Checkpoint or None
        The last one saved.
    stopped : str
        Why the run ended before its last step: `early-stopping`, `fast-fail`, `hang`; "" if it didn't.
    """

    def __init__(
        self, config: RunConfig, faults: Sequence[Fault] = (), clock: Clock | None = None, *, probe: bool = False
    ) -> None:
        torch.manual_seed(config.seed)
        self.config, self.faults, self.clock = config, faults, clock or Clock(config.seed)
        self.task = build_task(config)
        for fault in faults:
            self.task.train, self.task.valid = fault.data(self.task.train, self.task.valid)
        self.model = self.task.model()
        for fault in faults:
            fault.model(self.model)
        self.loader = Loader(self.task.train, config, self.task.classes)
        self.optimizer = build_optimizer(self.model, config)
        self.schedule = RateSchedule(config)
        self.scaler = torch.amp.GradScaler(
            "cpu",
            init_scale=config.loss_scale,
            growth_interval=config.loss_scale_window,
            enabled=config.precision == "fp16",
        )
        self.probe = Probe(self.model) if probe else None
        self.step, self.best, self.worse = 0, math.inf, 0
        self.checkpoint: Checkpoint | None = None
        self.stopped = ""

    def run(self, until: int = 0) -> Iterator[Record]:
        """Train up to an update (by default to the end); yield a record an update, and one an evaluation."""
        config = self.config
        while self.step < (until or config.total_steps) and not self.stopped:
            present = [fault for fault in self.faults if fault.at(self.step)]
            if any(fault.ends() for fault in present):
                self.stopped = "hang"
                return
            rate = self._set_rate(present)
            values = self._backward(present)
            values["grad_norm"] = self._clip()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.step += 1
            yield self._report(values | {"learning_rate": rate}, present)

            if config.eval_steps and self.step % config.eval_steps == 0:
                yield self._evaluate()
            if config.save_steps and self.step % config.save_steps == 0:
                self.clock.wait(CHECKPOINT)
                self.checkpoint = Checkpoint.of(self)
            if config.max_loss and not values["train_loss"] <= config.max_loss:
                self.stopped = "fast-fail"

    def _set_rate(self, present: Sequence[Fault]) -> float:
        rate = self.schedule(self.step)
        for fault in present:
            rate = fault.rate(rate, self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group.get("scale", 1.0)
        return rate

    def _backward(self, present: Sequence[Fault]) -> dict[str, float]:
        """Sum the gradients of an update's micro-batches; return the mean of their losses and metrics."""
        config, sums = self.config, dict[str, float]()
        self._mode(training=True)
        if not any(fault.keeps_gradients() for fault in present):
            self.optimizer.zero_grad(set_to_none=True)
        for _ in range(config.accumulate_grad_batches):
            batch = next(self.loader)
            for fault in present:
                batch = fault.batch(batch)
            with self._autocast():
                outcome = self.task.outcome(self.model, batch)
                loss = outcome.loss + penalty(self.model, config)
                for fault in present:
                    loss = fault.loss(loss)
            share = config.accumulate_grad_batches if config.normalize_accumulation else 1
            backward(self.scaler.scale(loss / share), self.optimizer)
            for role, value in {"train_loss": outcome.loss if loss.isfinite() else loss, **outcome.metrics}.items():
                sums[role] = sums.get(role, 0.0) + float(value.detach()) / config.accumulate_grad_batches
        for fault in present:
            fault.gradients(self.model)
        return sums

    def _clip(self) -> float:
        """Unscale, clip by value and by norm; return the norm before the clipping by norm."""
        config, parameters = self.config, list(self.model.parameters())
        self.scaler.unscale_(self.optimizer)
        if config.clip_value:
            nn.utils.clip_grad_value_(parameters, config.clip_value)
        return float(nn.utils.clip_grad_norm_(parameters, config.max_grad_norm or math.inf))

    def _report(self, values: dict[str, float], present: Sequence[Fault]) -> Record:
        config = self.config
        seconds = self.clock.step(config.accumulate_grad_batches)
        for fault in present:
            seconds += self.clock.wait(fault.seconds(self.step, config.num_workers))
        values["step_time"] = seconds
        values["throughput"] = config.batch_size * config.accumulate_grad_batches / seconds
        values |= counters.healthy(config.seed, self.step, seconds)
        for fault in present:
            values |= fault.counters(self.step)
        if self.scaler.is_enabled():
            values["loss_scale"] = self.scaler.get_scale()
        if self.probe is not None:
            values |= self.probe.read()
        return Record(self.step, self.loader.epoch, self.clock.now, "train", values)

    @torch.no_grad()
    def _evaluate(self) -> Record:
        """Return the validation record; count evaluations without improvement."""
        self._mode(training=False)
        sums: dict[str, float] = {}
        total = len(self.task.valid[0])
        for start in range(0, total, 256):
            batch: Batch = tuple(part[start : start + 256] for part in self.task.valid)
            outcome, share = self.task.outcome(self.model, batch), len(batch[0]) / total
            for role, value in {"train_loss": outcome.loss, **outcome.metrics}.items():
                of, dot, which = role.partition(".")
                name = VALIDATION.get(of, of) + dot + which
                sums[name] = sums.get(name, 0.0) + float(value) * share
        self.clock.wait(EVALUATION)
        self.schedule.observe(sums["val_loss"])
        self.worse = 0 if sums["val_loss"] < self.best else self.worse + 1
        self.best = min(self.best, sums["val_loss"])
        if self.config.early_stopping and self.worse >= self.config.early_stopping:
            self.stopped = "early-stopping"
        return Record(self.step, self.loader.epoch, self.clock.now, "valid", sums)

    def _mode(self, *, training: bool) -> None:
        self.model.train(training)
        set_mode(self.optimizer, training=training)

    def _autocast(self) -> torch.autocast:
        precision = self.config.precision
        return torch.autocast("cpu", DTYPES.get(precision, torch.bfloat16), enabled=precision in DTYPES)
