"""CRC-32C as TFRecord files store it: rotated and shifted ("masked").

The polynomial and the mask are those of LevelDB's log format, which TensorFlow's record writer took over.
"""

from __future__ import annotations

from functools import cache

import google_crc32c
import numpy as np
import numpy.typing as npt

DELTA = 0xA282EAD8  # LevelDB's kMaskDelta
BITS = 0xFFFFFFFF
SHORT = 1 << 16  # lengths that `short_length_checks` covers

crc32c = google_crc32c.value


def masked(data: bytes) -> int:
    """Return the masked CRC-32C of `data`, the number that stands in the file."""
    crc: int = crc32c(data)
    return ((crc >> 15 | crc << 17) + DELTA) & BITS


@cache
def short_length_checks() -> npt.NDArray[np.uint32]:
    """Return the masked CRC-32C of the eight bytes of every length below 65,536; uint32, shape (65536,)."""
    table: npt.NDArray[np.uint32] = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> np.uint32(1)) ^ (table & np.uint32(1)) * np.uint32(0x82F63B78)
    length = np.arange(SHORT, dtype=np.uint32)
    crc = np.full(SHORT, BITS, np.uint32)
    for shift in range(0, 64, 8):  # the upper six of the eight bytes are zero
        byte = length >> np.uint32(shift) if shift < 16 else np.zeros_like(length)
        crc = table[(crc ^ byte) & np.uint32(255)] ^ (crc >> np.uint32(8))
    crc = ~crc
    return (crc >> np.uint32(15) | crc << np.uint32(17)) + np.uint32(DELTA)
