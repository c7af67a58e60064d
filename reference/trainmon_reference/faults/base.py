"""What goes wrong in a run, injected at a known step.

A fault is a set of hooks that the trainer calls; it changes nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn

    Batch = tuple[Tensor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault that is there from `step` (first update that it touches) until `until` (exclusive; 0 is for good)."""

    step: int = 0
    until: int = 0

    def at(self, step: int) -> bool:
        """Tell whether the fault is there at this update."""
        return self.step <= step and (not self.until or step < self.until)

    def model(self, model: nn.Module) -> None:
        """Change the model before the first update."""

    def data(self, train: Batch, valid: Batch) -> tuple[Batch, Batch]:
        """Change the two sets before the first update."""
        return train, valid

    def batch(self, batch: Batch) -> Batch:
        """Change a training batch."""
        return batch

    def loss(self, loss: Tensor) -> Tensor:
        """Change the loss of a micro-batch before the backward pass."""
        return loss

    def gradients(self, model: nn.Module) -> None:
        """Change the gradients after the backward pass, before they are clipped."""

    def rate(self, rate: float, step: int) -> float:
        """Change the rate that the schedule gives for this update."""
        return rate

    def keeps_gradients(self) -> bool:
        """Tell whether the gradients of the update before are left where they are (no zero_grad)."""
        return False

    def seconds(self, step: int, workers: int) -> float:
        """Return the seconds that this update takes longer."""
        return 0.0

    def counters(self, step: int) -> dict[str, float]:
        """Return device counters (simulated) in place of the healthy ones."""
        return {}

    def ends(self) -> bool:
        """Tell whether the job hangs here: nothing is logged from this update on."""
        return False
