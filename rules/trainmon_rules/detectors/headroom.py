"""How much memory there is: what memory-growth needs to say when it runs out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainmon_rules import units
from trainmon_rules.detectors.base import Peer
from trainmon_rules.series import Block, Series
from trainmon_rules.words import short

SETTINGS = {"gpu_mem": ("gpu_memory", "80GB"), "cpu_mem": ("host_memory", "64GB")}
"""For each role the setting that says how much there is, with an example."""


@dataclass(slots=True)
class Headroom:
    """The capacity behind a memory metric, in its own unit.

    Levels are memory in use; `free` says that the metric logs free memory, whose negative stands for use.
    """

    series: Series
    peer: Peer
    setting: Callable[[str], Any]

    @property
    def free(self) -> bool:
        """Whether the metric logs what is left."""
        return self.series.role == "gpu_mem_free" or bool(units.words(self.series.tag) & {"free", "available"})

    def capacity(self, block: Block, now: float) -> float | None:
        """Return the level at which memory is used up, as of the block's end; None where nobody knows it.

        Parameters
        ----------
        block : Block
            The points judged last.
        now : float
            Level now.
        """
        if self.free:
            return 0.0
        unit = units.memory_unit(self.series.tag, abs(now))
        if unit == units.PERCENT:
            return 100.0
        given = self.setting(SETTINGS[self.series.role][0]) if self.series.role in SETTINGS else None
        if given and isinstance(unit, float):
            return float(given) / unit
        return self._used_and_free(block, unit) if self.series.role == "gpu_mem" else None

    def _used_and_free(self, block: Block, unit: float | str | None) -> float | None:
        at = len(block) - 1
        used = [tag for tag, _ in self.peer.every("gpu_mem", block, at, 1)]
        free = self.peer.every("gpu_mem_free", block, at, 1)
        if len(used) != len(free) or self.series.tag not in used:  # which belongs to which
            return None
        tag, view = free[used.index(self.series.tag)]
        total = float(block.value[at] + view.value[-1])
        same = units.memory_unit(tag, float(view.value[-1])) == unit
        return total if same and math.isfinite(total) else None

    def asks(self, now: float) -> str:
        """Return the answer that would tell the capacity, as one types it; "" if none would."""
        known = isinstance(units.memory_unit(self.series.tag, abs(now)), float)
        return "--set {}={}".format(*SETTINGS[self.series.role]) if known and self.series.role in SETTINGS else ""

    def amount(self, level: float, now: float) -> str:
        """Return an amount of memory, used or free, as a person reads it; `now` tells the unit by its size."""
        unit, number = units.memory_unit(self.series.tag, abs(now)), abs(level)
        if unit == units.PERCENT:
            return f"{short(number, 3)} %"
        return f"{short(number * unit, 3)} GB" if isinstance(unit, float) else short(number, 3)
