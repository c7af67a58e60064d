"""Normalisations by name, over features (…, width) or images (batch, width, height, width of the image)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor, nn

from trainmon_reference.choices.named import chosen
from trainmon_rules.errors import BadConfig

GROUPS = 4


class OverChannels(nn.Module):
    """A normalisation of the last axis, applied to the channels of an image."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised images, of the input's shape."""
        y: Tensor = self.norm(x.movedim(1, -1)).movedim(-1, 1)
        return y


def _batch(width: int, images: bool) -> nn.Module:
    return nn.BatchNorm2d(width) if images else nn.BatchNorm1d(width)


def _layer(width: int, images: bool) -> nn.Module:
    return nn.GroupNorm(1, width) if images else nn.LayerNorm(width)


def _group(width: int, images: bool) -> nn.Module:
    return nn.GroupNorm(GROUPS if width % GROUPS == 0 else 1, width)


def _rms(width: int, images: bool) -> nn.Module:
    return OverChannels(nn.RMSNorm(width)) if images else nn.RMSNorm(width)


def _instance(width: int, images: bool) -> nn.Module:
    if not images:
        raise BadConfig("normalization: instance needs images: a feature has one value an example")
    return nn.InstanceNorm2d(width, affine=True)


NORMALIZATIONS: Mapping[str, Callable[[int, bool], nn.Module]] = {
    "none": lambda width, images: nn.Identity(),
    "batch": _batch,
    "layer": _layer,
    "group": _group,
    "rms": _rms,
    "instance": _instance,
}


def build_normalization(name: str, width: int, *, images: bool = False) -> nn.Module:
    """Return a normalisation.

    Parameters
    ----------
    name : str
        A key of `NORMALIZATIONS`.
    width : int
        Features, or channels.
    images : bool
        Whether the input is (batch, channels, height, width), else (batch, width).

    Raises
    ------
    BadConfig
        If the name isn't known, or the normalisation has no meaning for this input.
    """
    return chosen("normalization", name, NORMALIZATIONS)(width, images)
