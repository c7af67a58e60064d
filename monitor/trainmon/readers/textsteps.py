"""Where on the step axis a line of a text log stands.

A line may name its step; or an epoch and an iteration that starts over each epoch, which is unrolled; or
nothing, and then it stands at the counter of the training's progress bar if there is one, else at the last
step known.

An overflow line names no step either. It stands at the progress bar on the same line, else one after the last
step known (the update that was skipped), several overflows in a row at the same step: frameworks differ in
whether a skipped update counts, and so the step never runs ahead of the next report.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainmon.readers.prefixes import Bar


@dataclass(slots=True)
class Steps:
    """The axis of one text log. `last` is the last step given, None while none is known."""

    last: int | None = None
    by_bar: bool = False
    max_steps: int | None = None
    _epoch: int | None = None
    _base: int = 0
    _batch: int = 0
    _batches: int | None = None
    _named_epoch: int | None = None
    _epochs: int | None = None
    _bar: tuple[int, int] | None = None  # of the last bar seen: count, total
    _main: int | None = None  # total of the bar that counts training steps
    _counter: int = 0
    _overflow: int = -1

    def take_bar(self, bar: Bar) -> None:
        """Hear a progress bar without a name: Hugging Face's main bar, an evaluation's, a loop of one's own."""
        if bar.name or bar.metrics:
            return
        self._bar = (bar.n, bar.total)
        if bar.total == self._main:
            self._counter = bar.n

    def name_epoch(self, epoch: int | None, epochs: int | None) -> None:
        """Hear the line that stands before an epoch (Keras)."""
        self._named_epoch = epoch if epoch is not None else self._named_epoch
        self._epochs = epochs if epochs is not None else self._epochs

    def at(self, step: int) -> int:
        """Take a step that the line names."""
        self.by_bar = False
        return self._go(step)

    def unrolled(self, epoch: int | None, batch: int, batches: int | None, first_epoch: int) -> int:
        """Return the step of a batch of an epoch.

        Later epochs are added up by the length of those before; the first epoch seen is placed by its number
        where the length of an epoch is known, so that half a log has the steps of the whole. Where no length is
        printed, an epoch is as long as its last batch number, and a number that goes on counting is left alone.
        """
        if epoch is None:
            epoch = self._named_epoch
        if epoch is None:
            epoch = (self._epoch or 0) + (self._epoch is not None and batch < self._batch)
            first_epoch = 0
        if self._epoch is None or epoch < self._epoch:
            self._base = max(0, epoch - first_epoch) * (batches or 0)
        elif epoch > self._epoch:
            if self._batches is not None:
                self._base += (epoch - self._epoch) * self._batches
            elif batch <= self._batch:
                self._base += self._batch
        self._epoch, self._batch, self._batches = epoch, batch, batches
        if self._epochs is not None and batches is not None:
            self.max_steps = self._epochs * batches
        return self.at(self._base + batch)

    def implied(self, training: bool) -> int | None:
        """Return the step of a line that names none; None while no axis is known."""
        if self.last is not None and not self.by_bar:
            return self.last
        if self._main is None and training and self._bar is not None:
            self._counter, self._main = self._bar
        if self._main is None:
            return None
        self.by_bar = True
        return self._go(self._counter)

    def of_overflow(self, bar: Bar | None) -> int | None:
        """Return the step of a skipped update; None while no axis is known."""
        if bar is not None and not bar.name and (self.last is None or self.by_bar):
            self._main, self._counter, self.by_bar = bar.total, bar.n, True
            self._overflow = self._go(bar.n)
        elif self.last is not None:
            self._overflow = max(self._overflow, self.last + 1)
        else:
            return None
        return self._overflow

    def _go(self, step: int) -> int:
        if self.last is not None and step < self.last:
            self._overflow = -1  # a restart: what follows may lie before the last overflow
        self.last = step
        return step
