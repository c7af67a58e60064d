"""Mixed-precision overflows in text logs: which lines are news, and what the loss scale is after them.

Every rank may print the same line. How many do is learnt from the scale: while it halves, each value is printed
once a rank, so the shortest run of identical lines is the number of ranks. Before that is known, identical
neighbours are one; afterwards a scale that is stuck counts again each time all ranks have said so.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Overflows:
    """Counts skipped updates of one log."""

    skipped: int = 0
    _line: str = ""
    _run: int = 0
    _copies: int = 0  # ranks that print, 0 while unknown
    _scale: dict[str, float] = field(default_factory=dict)
    _at_floor: bool = False

    def is_new(self, line: str) -> bool:
        """Hear a line that every rank may print; return whether it tells of another overflow."""
        if line == self._line:
            self._run += 1
            return self._copies > 0 and (self._run - 1) % self._copies == 0
        if self._run:
            self._copies = min(self._copies or self._run, self._run)
        self._line, self._run = line, 1
        return True

    def skip(self, scale: float, scaler: str | None) -> dict[str, float]:
        """Return the record of a skipped update; scalers other than 0 have tags of their own."""
        tag = "loss_scale" if scaler is None or int(scaler) == 0 else f"loss_scale_{int(scaler)}"
        self.skipped += 1
        self._at_floor = False
        self._scale[tag] = scale
        return {tag: scale, "skipped_steps": float(self.skipped)}

    def floor(self, scale: str | None) -> dict[str, float]:
        """Return the record of the update at which the scale could fall no further; {} if it was told already."""
        if self._at_floor:
            return {}
        self.skipped += 1
        self._at_floor = True
        known = self._scale or ({} if scale is None else {"loss_scale": float(scale)})
        return {**known, "skipped_steps": float(self.skipped)}
