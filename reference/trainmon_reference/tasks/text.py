"""A character language model on the text that Python ships."""

from __future__ import annotations

from trainmon_reference.config import RunConfig
from trainmon_reference.data.corpus import alphabet, windows
from trainmon_reference.models.transformer import Transformer
from trainmon_reference.tasks.base import Batch, Outcome
from trainmon_reference.tasks.supervised import Supervised

CONTEXT = 16  # characters
VALID = 512


class Text:
    """The task: a batch is characters (n, 16), as numbers, and at each place the next one.

    The validation text comes after the training text, so it is about other things: its loss is somewhat higher.
    """

    def __init__(self, config: RunConfig) -> None:
        pieces = windows(CONTEXT + 1)
        count = len(pieces) - VALID
        train, valid = pieces[:count][: config.dataset_size or None], pieces[count:]
        self.config, self.classes = config, len(alphabet())
        self.train: Batch = (train[:, :-1], train[:, 1:])
        self.valid: Batch = (valid[:, :-1], valid[:, 1:])
        self.objective = Supervised(config, "cross-entropy", self.classes)

    def model(self) -> Transformer:
        """Return a transformer."""
        return Transformer(self.classes, self.objective.outputs, CONTEXT, self.config)

    def outcome(self, model: Transformer, batch: Batch) -> Outcome:
        """Return the loss a character, the share guessed right, and the highest attention logit (`attention`)."""
        symbols, following = batch
        found = self.objective.outcome(model(symbols).flatten(0, 1), following.flatten())
        return Outcome(found.loss, {**found.metrics, "attention": model.attention()})
