"""Which curves of a run are worth showing: what the worst incident is about, else where the levels went."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from trainmon_exporters.attempts_shown import one_line
from trainmon_exporters.plot import Mark
from trainmon_exporters.story import Telling
from trainmon_exporters.wording import axis_word, many
from trainmon_rules.report import Curve, IncidentReport, RunReport
from trainmon_rules.words import short

FEW = 5  # steps below which the values say more than a plot
LOSSES = ("train_loss", "val_loss")
LEVELS = ("reward", "eval_metric", "train_metric")  # judged by where they rise to, where no loss is logged
EDGE = 8  # cells at either end whose median is a level


@dataclass(frozen=True, slots=True)
class Picture:
    """What to draw: one quantity, the validation curve beside it, onsets, and what the reader must know of it."""

    main: tuple[Curve, ...]
    val: tuple[Curve, ...]
    marks: tuple[Mark, ...]
    remark: str = ""

    @property
    def worth_it(self) -> bool:
        """Whether there are enough different points for a plot to say more than the values."""
        return any(_steps(curves) >= FEW and _varies(curves) for curves in (self.main, self.val))


def picture(run: RunReport, told: Telling) -> Picture:
    """Return the plot of a run with incidents: the loss if the main one is about it, else the main one's series.

    An onset is marked if the incident is about one of the curves shown.
    """
    main = told.main.incident
    train, val = _of_incident(run, main.series)
    if not train:
        train, val = val, []
    shown, cut = one_line(train, main.attempt)
    beside, also_cut = one_line(val, main.attempt)
    marks = tuple(
        Mark(n.incident.onset_step, str(n.number), n.incident.severity)
        for n in told.full
        if any(_shows(c, n.incident) for c in (*shown, *beside))
    )
    attempts = {c.attempt for c in (*shown, *beside)}
    kept = main.attempt if main.attempt in attempts else max(attempts, default=1)
    remark = f"attempt {kept} where attempts overlap" if cut or also_cut else ""
    return Picture(tuple(shown), tuple(beside), marks, remark)


def _shows(curve: Curve, i: IncidentReport) -> bool:
    """Whether the onset of an incident lies on a curve; a cell is known by its first step only, hence the slack."""
    first, last = curve.steps[0], curve.steps[-1]
    slack = (last - first) // 20 + 1
    return curve.tag in i.series and curve.attempt == i.attempt and first - slack <= i.onset_step <= last + slack


def _of_incident(run: RunReport, series: Sequence[str]) -> tuple[list[Curve], list[Curve]]:
    roles = {c.tag: c.role for c in run.curves if c.steps}
    if any(roles.get(tag) in LOSSES for tag in series):
        return _of_role(run, "train_loss", series), _of_role(run, "val_loss", series)
    named = next((tag for tag in series if tag in roles), None)
    if named is not None:
        return [c for c in run.curves if c.tag == named and c.steps], []
    return loss_curves(run)


def loss_curves(run: RunReport) -> tuple[list[Curve], list[Curve]]:
    """Return the training and the validation curve, each over all attempts; else the best there is."""
    train = _of_role(run, "train_loss")
    val = _of_role(run, "val_loss")
    if train or val:
        return train, val
    for role in LEVELS:
        if found := _of_role(run, role):
            return found, []
    return [], []


def _of_role(run: RunReport, role: str, preferred: Sequence[str] = ()) -> list[Curve]:
    """One tag's curves: a preferred tag if there is one, else the first."""
    tags = [c.tag for c in run.curves if c.role == role and c.steps]
    wanted = [t for t in (*preferred, *run.roles.get(role, ()), *tags) if t in tags][:1]
    return [c for c in run.curves if c.role == role and c.tag in wanted and c.steps]


# ---------------------------------------------------------------------- in words
def in_values(curves: Sequence[Curve], axis: str) -> str:
    """Return a curve that isn't worth a plot in words: its few values, or the one value that it has."""
    tag, word = curves[0].tag, axis_word(axis)
    cells = [
        (step, lo <= hi, m) for c in curves for step, lo, m, hi in zip(c.steps, c.low, c.mean, c.high, strict=True)
    ]
    if len(cells) < FEW:
        return f"{tag}: " + ", ".join(f"{short(m) if ok else 'not finite'} at {word} {s}" for s, ok, m in cells)
    span = f"from {word} {cells[0][0]} to {cells[-1][0]}"
    values = [m for _, ok, m in cells if ok]
    if not values:
        return f"{tag}: not finite at any {word} {span}"
    bad = sum(n for c in curves for n in c.bad)
    course = short(values[0])
    if min(values) < max(values):
        course += f" → {short(values[-1])}, between {short(min(values))} and {short(max(values))}"
    return f"{tag}: {course} {span}" + (f", and not finite in {many(bad, 'row')}" if bad else "")


def _steps(curves: Sequence[Curve]) -> int:
    return len({s for c in curves for s in c.steps})


def _varies(curves: Sequence[Curve]) -> bool:
    cells = [(lo, hi) for c in curves for lo, hi in zip(c.low, c.high, strict=True) if lo <= hi]
    return bool(cells) and min(lo for lo, _ in cells) < max(hi for _, hi in cells)


def levels(run: RunReport) -> list[str]:
    """Return from which level to which each loss (else reward or metric) went, in words.

    A level is the median of the first or last three points; whether it rose or fell is said by more of them.
    """
    out = []
    for curves in loss_curves(run):
        values = [m for c in curves for m, lo, hi in zip(c.mean, c.low, c.high, strict=True) if lo <= hi]
        if len(values) > 1:
            out.append(_level(curves, values))
    return out


def _level(curves: Sequence[Curve], values: Sequence[float]) -> str:
    curve = curves[0]
    n = max(1, min(EDGE, len(values) // 4))
    first, last = median(values[:n]), median(values[-n:])
    begin, end = curve.ends, curves[-1].ends
    text = f"{curve.tag} {short(begin[0] if begin else first)} → {short(end[1] if end else last)}"
    change = (first - last) if curve.role in LEVELS else (last - first)
    noise = max(_spread(values[:n]), _spread(values[-n:]))
    if math.isfinite(change) and change > noise:
        text += f" ({'lower' if curve.role in LEVELS else 'higher'} at the end than at the start)"
    return text


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)
