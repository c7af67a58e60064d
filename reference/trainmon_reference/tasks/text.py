"""A character language model on text that comes with Python: its own licence, as `site` prints it, and the Zen."""

from __future__ import annotations

import codecs
import contextlib
import functools
import io

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainmon_reference.config import RunConfig
from trainmon_reference.tasks.base import Batch, Outcome

CONTEXT = 32  # characters


@functools.cache
def corpus() -> str:
    """Return the text: docstrings of the standard library, which every Python has."""
    import argparse  # noqa: PLC0415
    import decimal  # noqa: PLC0415
    import difflib  # noqa: PLC0415
    import inspect  # noqa: PLC0415
    import textwrap  # noqa: PLC0415

    with contextlib.redirect_stdout(io.StringIO()):
        import this  # noqa: PLC0415
    modules = (argparse, textwrap, difflib, decimal)
    text = codecs.decode(this.s, "rot13") + "\n".join(inspect.getsource(module) for module in modules)
    return "".join(c if c.isascii() else " " for c in text)


class Attention(nn.Module):
    """Causal self-attention with two heads."""

    def __init__(self, width: int, qk_norm: bool) -> None:
        super().__init__()
        self.qkv, self.out, self.qk_norm = nn.Linear(width, 3 * width), nn.Linear(width, width), qk_norm

    def forward(self, x: Tensor) -> Tensor:
        """Return the mixed sequence; x has shape (batch, time, width)."""
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, 2, w // 2).permute(2, 0, 3, 1, 4)
        if self.qk_norm:
            q, k = (
                functional.normalize(q, dim=-1) * (w // 2) ** 0.25,
                functional.normalize(k, dim=-1) * (w // 2) ** 0.25,
            )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, w))


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        width = config.width
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, config.qk_norm)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.drop = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output, of the input's shape."""
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class Transformer(nn.Module):
    """A decoder of `depth` blocks over characters."""

    def __init__(self, config: RunConfig, symbols: int) -> None:
        super().__init__()
        self.symbol, self.place = nn.Embedding(symbols, config.width), nn.Embedding(CONTEXT, config.width)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.depth)))
        self.norm, self.head = nn.LayerNorm(config.width), nn.Linear(config.width, symbols)
        self.cap = config.logit_soft_cap

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (batch, time, symbols) for symbols (batch, time)."""
        h = self.symbol(x) + self.place.weight[: x.shape[1]]
        logits: Tensor = self.head(self.norm(self.blocks(h)))
        return self.cap * torch.tanh(logits / self.cap) if self.cap else logits


class Text:
    """The task."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        text = corpus()
        symbols = sorted(set(text))
        index = {symbol: i for i, symbol in enumerate(symbols)}
        ids = torch.tensor([index[c] for c in text])
        windows = ids[: len(ids) // (CONTEXT + 1) * (CONTEXT + 1)].view(-1, CONTEXT + 1)
        cut = len(windows) * 9 // 10
        train = windows[:cut][: config.dataset_size or None]
        self.train: Batch = (train,)
        self.valid: Batch = (windows[cut : cut + 256],)
        self.classes = len(symbols)

    def model(self) -> nn.Module:
        """Return a transformer."""
        return Transformer(self.config, self.classes)

    def outcome(self, model: nn.Module, batch: Batch) -> Outcome:
        """Return the cross-entropy a character, and the share of characters guessed right."""
        (windows,) = batch
        logits, target = model(windows[:, :-1]), windows[:, 1:]
        loss = functional.cross_entropy(
            logits.flatten(0, 1).float(), target.flatten(), label_smoothing=self.config.label_smoothing
        )
        return Outcome(loss, {"train_metric": (logits.argmax(-1) == target).float().mean().detach()})
