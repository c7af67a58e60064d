"""What tasks with targets have in common: which loss, how many outputs for it, and what is measured beside it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from trainmon_reference.choices.losses import CLASSIFICATION, REGRESSION, loss_name
from trainmon_reference.config import RunConfig
from trainmon_reference.tasks.base import Outcome

ON_NUMBERS = ("bce", "hinge")
"""Losses of a classification that can be computed, wrongly, on targets that are any numbers."""


class Supervised:
    """The loss of a classification or a regression.

    A regression's loss on a classification has one output, which is to be the number of the class. That is a wrong
    loss for the task, and possible.

    Parameters
    ----------
    config : RunConfig
        Of which `loss_function` and `label_smoothing` matter.
    own : str
        The task's own loss.
    classes : int
        0 for a regression.

    Attributes
    ----------
    outputs : int
        That the model has to have.
    """

    def __init__(self, config: RunConfig, own: str, classes: int = 0) -> None:
        self.name = loss_name(config, own, REGRESSION, CLASSIFICATION if classes else ON_NUMBERS)
        self.config, self.classes = config, classes
        self.outputs = classes if classes and self.name in CLASSIFICATION else 1

    def outcome(self, output: Tensor, target: Tensor) -> Outcome:
        """Return the loss, with the accuracy as `train_metric`, or a regression's mean error as `train_error`.

        Parameters
        ----------
        output : float tensor, shape (n, outputs)
            Of the model; computed with in single precision.
        target : tensor
            Class numbers (int64, shape (n,)) or class shares (float, shape (n, classes)); of a regression, numbers
            (float, shape (n,)).
        """
        output = output.float()
        if not self.classes:
            error = (output.detach()[:, 0] - target).abs().mean()
            return Outcome(self._of(output, target[:, None]), {"train_error": error})
        shares = target if target.is_floating_point() else functional.one_hot(target, self.classes).float()
        number = target.argmax(1) if target.is_floating_point() else target
        if self.name in CLASSIFICATION:
            loss, guess = self._of(output, shares), output.argmax(1)
        else:
            numbers = shares @ torch.arange(self.classes, dtype=shares.dtype)
            loss, guess = self._of(output, numbers[:, None]), output.detach()[:, 0].round()
        return Outcome(loss, {"train_metric": (guess == number).float().mean()})

    def _of(self, output: Tensor, target: Tensor) -> Tensor:
        if self.name in REGRESSION:
            return REGRESSION[self.name](output, target)
        return CLASSIFICATION[self.name](output, target, self.config)
