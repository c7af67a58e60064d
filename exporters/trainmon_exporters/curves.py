"""Which curves of a run are worth showing: the loss, and what the worst incident is about."""

from __future__ import annotations

from trainmon_exporters.story import Telling, rank
from trainmon_rules.report import Curve, RunReport


def loss_curves(run: RunReport) -> tuple[list[Curve], list[Curve]]:
    """Return the training and the validation curve to plot, each over all attempts; else the best there is."""
    train = _of_role(run, "train_loss")
    val = _of_role(run, "val_loss")
    if train or val:
        return train, val
    for role in ("reward", "eval_metric"):
        if found := _of_role(run, role):
            return found, []
    return [], []


def _of_role(run: RunReport, role: str) -> list[Curve]:
    """One tag's curves: the tag that an incident is about if there is one, else the first."""
    tags = [c.tag for c in run.curves if c.role == role and c.steps]
    if not tags:
        return []
    named = [t for i in run.incidents if i.severity != "info" for t in i.series if t in tags]
    tag = (named or [*run.roles.get(role, ()), *tags])[0]
    return [c for c in run.curves if c.role == role and c.tag == tag and c.steps] or [
        c for c in run.curves if c.role == role and c.tag == tags[0] and c.steps
    ]


def side_curves(run: RunReport, told: Telling) -> list[Curve]:
    """Return the curve that the worst incident is about, where that isn't the loss."""
    worst = sorted(told.full, key=lambda n: rank(n.incident.severity))
    if not worst or not worst[0].incident.series:
        return []
    tag = worst[0].incident.series[0]
    shown = {c.tag for pair in loss_curves(run) for c in pair}
    return [c for c in run.curves if c.tag == tag and tag not in shown and c.steps]


def course(run: RunReport) -> list[str]:
    """Return from where to where each loss went, in words, for a run with nothing else to tell."""
    out = []
    for curves in loss_curves(run):
        values = [m for c in curves for m, lo, hi in zip(c.mean, c.low, c.high, strict=True) if lo <= hi]
        if len(values) > 1:
            out.append(f"{curves[0].tag} {values[0]:.4g} -> {values[-1]:.4g}")
    return out
