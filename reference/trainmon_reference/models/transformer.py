"""A small decoder: a transformer over characters."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainmon_reference.choices.activations import build_activation
from trainmon_reference.choices.initialization import initialize
from trainmon_reference.choices.normalization import build_normalization
from trainmon_reference.choices.regularization import DropPath
from trainmon_reference.config import RunConfig
from trainmon_reference.models.blocks import capped
from trainmon_rules.errors import BadConfig

HEADS = 2
NORMALIZATIONS = ("layer", "rms", "none")  # those that look at one place of one text


class Attention(nn.Module):
    """Causal self-attention, written out: an optimizer of second order needs its second derivative.

    Attributes
    ----------
    highest : Tensor, scalar
        The highest absolute attention logit of the last forward pass.
    """

    later: Tensor

    def __init__(self, width: int, context: int, qk_norm: bool) -> None:
        super().__init__()
        self.qkv, self.out, self.qk_norm = nn.Linear(width, 3 * width), nn.Linear(width, width), qk_norm
        self.highest = torch.zeros(())
        later = torch.ones(context, context, dtype=torch.bool).triu(1)
        self.register_buffer("later", later, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the mixed sequence; x has shape (batch, time, width)."""
        batch, time, width = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        scale = (width // HEADS) ** -0.5
        if self.qk_norm:
            q, k, scale = functional.normalize(q, dim=-1), functional.normalize(k, dim=-1), (width // HEADS) ** 0.5
        logits = (q @ k.transpose(-1, -2)).float() * scale
        self.highest = logits.detach().abs().amax()
        shares = logits.masked_fill(self.later[:time, :time], -torch.inf).softmax(-1)
        y: Tensor = self.out((shares.to(v.dtype) @ v).transpose(1, 2).reshape(batch, time, width))
        return y


class Layer(nn.Module):
    """A pre-norm block of attention and a feed-forward network."""

    def __init__(self, context: int, config: RunConfig) -> None:
        super().__init__()
        width, norm = config.width, config.normalization or "layer"
        self.norm1, self.norm2 = build_normalization(norm, width), build_normalization(norm, width)
        self.attention = Attention(width, context, config.qk_norm)
        activation = build_activation(config.activation or "gelu")
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), activation, nn.Linear(2 * width, width))
        self.drop, self.residual = (
            nn.Sequential(nn.Dropout(config.dropout), DropPath(config.drop_path)),
            config.residual,
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output, of the input's shape."""
        kept = 1.0 if self.residual else 0.0
        x = kept * x + self.drop(self.attention(self.norm1(x)))
        y: Tensor = kept * x + self.drop(self.mlp(self.norm2(x)))
        return y


class Transformer(nn.Module):
    """A decoder of `depth` layers: characters (batch, time) → outputs (batch, time, outputs).

    Parameters
    ----------
    symbols, outputs, context : int
        Characters there are, outputs a place, and the longest sequence.
    config : RunConfig
        Of which width, depth and what shapes a layer matter. `normalization` is one of `NORMALIZATIONS`.
    """

    def __init__(self, symbols: int, outputs: int, context: int, config: RunConfig) -> None:
        super().__init__()
        if config.normalization not in ("", *NORMALIZATIONS):
            raise BadConfig(
                f"normalization: a transformer has {', '.join(NORMALIZATIONS)}, not {config.normalization!r}"
            )
        self.symbol, self.place = nn.Embedding(symbols, config.width), nn.Embedding(context, config.width)
        self.layers = nn.Sequential(*(Layer(context, config) for _ in range(config.depth)))
        self.norm = build_normalization(config.normalization or "layer", config.width)
        self.head, self.cap = nn.Linear(config.width, outputs), config.logit_soft_cap
        initialize(self, config.initialization)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        h = self.symbol(x) + self.place.weight[: x.shape[1]]
        return capped(self.head(self.norm(self.layers(h))), self.cap)

    def attention(self) -> Tensor:
        """Return the highest absolute attention logit of the last forward pass, of all layers."""
        return torch.stack([m.highest for m in self.modules() if isinstance(m, Attention)]).amax()
