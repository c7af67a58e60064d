"""Images of digits, generated: a 5 × 7 font, moved, brightened and darkened, with noise.

Any number of them, the same for a seed on any machine, and no file to load.
"""

from __future__ import annotations

import torch
from torch import Tensor

SIDE = 8  # pixels
CLASSES = 10
NOISE = 0.25  # standard deviation, of a stroke's brightness

# The usual 5 × 7 dot-matrix digits; a row of five dots is a number of two hexadecimal digits.
_ROWS = (
    "0E 11 13 15 19 11 0E", "04 0C 04 04 04 04 0E", "0E 11 01 02 04 08 1F", "1F 02 04 02 01 11 0E",
    "02 06 0A 12 1F 02 02", "1F 10 1E 01 01 11 0E", "06 08 10 1E 11 11 0E", "1F 01 02 04 08 08 08",
    "0E 11 11 0E 11 11 0E", "0E 11 11 0F 01 02 0C",
)  # fmt: skip


def glyphs(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Draw images of digits.

    Parameters
    ----------
    count, seed : int
        How many, and of the generator.

    Returns
    -------
    images : float32 tensor, shape (count, 1, 8, 8)
        Background 0, strokes about 1, noise on both.
    labels : int64 tensor, shape (count,)
        The digit.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count,), generator=generator)
    across, down = (torch.randint(room, (count,), generator=generator) for room in (SIDE - 4, SIDE - 6))
    bright = 0.6 + 0.8 * torch.rand(count, generator=generator)
    images = NOISE * torch.randn(count, SIDE, SIDE, generator=generator)
    for x in range(SIDE - 4):
        for y in range(SIDE - 6):
            here = (across == x) & (down == y)
            images[here, y : y + 7, x : x + 5] += bright[here, None, None] * _font()[labels[here]]
    return images[:, None], labels


def _font() -> Tensor:
    rows = [[[int(row, 16) >> (4 - x) & 1 for x in range(5)] for row in digit.split()] for digit in _ROWS]
    return torch.tensor(rows, dtype=torch.float32)
