"""A recurrent network that reads a sequence and answers at its end."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trainmon_reference.choices.initialization import initialize
from trainmon_reference.choices.named import chosen
from trainmon_reference.config import RunConfig
from trainmon_rules.errors import BadConfig

CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


class Recurrent(nn.Module):
    """Sequences (batch, time, inputs) → outputs (batch, outputs), from the last state of `depth` layers.

    `activation` is that of an `rnn` cell, `tanh` or `relu`; gated cells have their own. The recurrence runs in single
    precision also under autocast: a CPU has no half-precision LSTM.
    """

    def __init__(self, inputs: int, outputs: int, config: RunConfig) -> None:
        super().__init__()
        cell = config.cell or "lstm"
        kind = chosen("cell", cell, CELLS)
        if config.activation not in ("", "tanh", "relu"):
            raise BadConfig(f"activation: a recurrent model has tanh or relu, not {config.activation!r}")
        own = {"nonlinearity": config.activation or "tanh"} if cell == "rnn" else {}
        dropout = config.dropout if config.depth > 1 else 0.0  # torch drops between layers
        self.layers: nn.RNNBase = kind(inputs, config.width, config.depth, batch_first=True, dropout=dropout, **own)
        self.head = nn.Linear(config.width, outputs)
        initialize(self, config.initialization)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        with torch.autocast("cpu", enabled=False):
            states, _ = self.layers(x.float())
        y: Tensor = self.head(states[:, -1])
        return y
