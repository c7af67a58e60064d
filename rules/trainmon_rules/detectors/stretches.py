"""What a run's pace was like: in stretches of at least half a minute, the recent ones and, in cells, all before.

A single report is too short to be slow: a hiccup of a second isn't a slowdown, and wall times come with a resolution
of a second, or in batches, as a buffer was flushed. So reports are summarised until a stretch lasts long enough, and
rules count in stretches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from trainmon_rules import units
from trainmon_rules.detectors.pace import Paces, by_wall_time, whole_seconds
from trainmon_rules.points import FloatArray, IntArray
from trainmon_rules.series.robust import median

SPAN, SPAN_WHOLE = 20.0, 50.0  # seconds that a stretch should last, and where times are whole seconds
FIRST = 16  # reports by which it is told how many that is
PART = 16  # reports behind a median of their paces
TAKE = 128  # reports that are summarised at a time
WIDEST = 4096  # reports a stretch
UNKNOWN = 4  # reports a stretch where nobody knows how long a report takes
RECENT = 256  # stretches kept
CELLS = 128  # cells kept
GROUP = 16  # stretches a cell at first
PAUSE, PAUSE_SECONDS = 3.0, 3.0  # times the usual gap, and seconds above it: evaluation or a checkpoint


@dataclass(slots=True)
class Stretches:
    """The logarithm of the pace in consecutive stretches of a series with this role and tag.

    `level`, `step` and `time` (of a stretch's first report) hold the newest stretches, `count` says how many there
    were; `cells` are the medians of groups of them over the whole attempt, `cell_step` where each begins.
    """

    role: str
    tag: str
    width: int = 0
    count: int = 0
    level: FloatArray = field(default_factory=lambda: np.zeros(0))
    step: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    time: FloatArray = field(default_factory=lambda: np.zeros(0))
    cells: list[float] = field(default_factory=list)
    cell_step: list[int] = field(default_factory=list)
    cell_size: int = 1  # groups a cell
    _held: list[Paces] = field(default_factory=list)
    _holding: int = 0
    _begun: tuple[float, float, int, float] | None = None  # time, steps, first step and wall time of a part-filled one
    _parts: int = 0
    _group: list[float] = field(default_factory=list)
    _groups: int = 0
    _sum: float = 0.0
    _group_step: int = 0

    def room(self) -> int:
        """Return how many reports may come until the next summary."""
        if not self.width:
            return FIRST - self._holding
        often = 4 if self.count < 256 else 16 if self.count < 4096 else 64
        return max(min(self.width, TAKE), often) - self._holding

    def extend(self, reports: Paces, usual: bool = True) -> bool:
        """Take at most `room` reports; return whether there are new stretches.

        Parameters
        ----------
        reports : Paces
            The next ones, of known pace.
        usual : bool
            Whether they belong to the past with which later ones are compared.
        """
        self._held.append(reports)
        self._holding += len(reports)
        if not self.width and self._holding == FIRST:
            self.width = self._wide(self._joined())
        if not self.width or self.room() > 0:
            return False
        level, step, time = self._summary(self._joined())
        self._held, self._holding = [], 0
        self.count += len(level)
        self.level = np.concatenate([self.level, level])[-RECENT:]
        self.step = np.concatenate([self.step, step])[-RECENT:]
        self.time = np.concatenate([self.time, time])[-RECENT:]
        if usual:
            for x, s in zip(level.tolist(), step.tolist(), strict=True):
                self._remember(x, s)
        return len(level) > 0

    def drop(self) -> None:
        """Forget reports that don't fill a stretch."""
        self._held, self._holding = [], 0
        self._begun, self._parts = None, 0

    def restart(self, kept: int) -> None:
        """Forget what was usual but for the last `kept` stretches: the run does other work now."""
        self.level, self.step, self.time = self.level[-kept:], self.step[-kept:], self.time[-kept:]
        self.cells, self.cell_step, self.cell_size = [], [], 1
        self._group, self._groups, self._sum = [], 0, 0.0

    # ------------------------------------------------------------------ how
    def _joined(self) -> Paces:
        return Paces(*(np.concatenate([getattr(h, name) for h in self._held]) for name in Paces.__slots__))

    def _wide(self, first: Paces) -> int:
        """Return how many reports make a stretch: a power of two."""
        seconds = first.seconds[np.isfinite(first.seconds)]
        if len(seconds) >= FIRST // 2:
            each = median(seconds) or float(seconds.mean())
        elif self.role == "step_time":
            steps = first.steps[np.isfinite(first.steps)]
            pace = median(first.pace)
            each = pace * (median(steps) if len(steps) else 1.0) * units.seconds(self.tag, pace)
        else:
            return UNKNOWN
        span = SPAN_WHOLE if by_wall_time(self.role) and whole_seconds(first) else SPAN
        return WIDEST if each * WIDEST <= span else 1 << max(0, round(math.log2(span / each)))

    def _summary(self, p: Paces) -> tuple[FloatArray, IntArray, FloatArray]:
        """Return level, step and time of the stretches that these reports complete."""
        part = min(self.width, PART)
        if by_wall_time(self.role):
            usual = median(p.seconds) or (float(p.seconds.mean()) if whole_seconds(p) else 0.0)
            ok = p.seconds <= max(PAUSE * usual, usual + PAUSE_SECONDS) if usual > 0 else np.ones(len(p), np.bool_)
            spent, steps = (np.where(ok, a, 0.0).reshape(-1, part).sum(axis=1) for a in (p.seconds, p.steps))
        else:
            rows = p.pace.reshape(-1, part)
            middle = np.sort(rows, axis=1)[:, (part - 1) // 2 : part // 2 + 1]
            spent = middle.mean(axis=1)
            steps = np.ones(len(spent))
        begins = slice(None, None, part)
        if self.width > part:
            spent, steps, step, time = self._gathered(spent, steps, p.step[begins], p.time[begins])
        else:
            step, time = p.step[begins], p.time[begins]
        ok = (spent > 0) & (steps > 0)
        return np.log(spent[ok] / steps[ok]), step[ok], time[ok]

    def _gathered(
        self, spent: FloatArray, steps: FloatArray, step: IntArray, time: FloatArray
    ) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
        """Put parts together until they fill a stretch."""
        out = []
        for new in zip(spent.tolist(), steps.tolist(), step.tolist(), time.tolist(), strict=True):
            first = self._begun or (0.0, 0.0, *new[2:])
            self._begun = (first[0] + new[0], first[1] + new[1], *first[2:])
            self._parts += 1
            if self._parts == self.width // PART:
                out.append(self._begun)
                self._begun, self._parts = None, 0
        table = np.array(out, np.float64).reshape(-1, 4)
        return table[:, 0], table[:, 1], table[:, 2].astype(np.int64), table[:, 3]

    def _remember(self, level: float, step: int) -> None:
        """Add a stretch to the cells; when there are too many, neighbours are merged."""
        if not self._group and not self._groups:
            self._group_step = step
        self._group.append(level)
        if len(self._group) < GROUP:
            return
        self._sum += median(np.array(self._group))
        self._groups += 1
        self._group = []
        if self._groups == self.cell_size:
            self.cells.append(self._sum / self._groups)
            self.cell_step.append(self._group_step)
            self._groups, self._sum = 0, 0.0
        if len(self.cells) == CELLS:
            self.cells = [(a + b) / 2 for a, b in zip(self.cells[::2], self.cells[1::2], strict=True)]
            self.cell_step = self.cell_step[::2]
            self.cell_size *= 2
