"""Traces written by hand: a small log whose incidents are certain, and the truth beside it."""

import dataclasses
import json
import math
import random

from trainmon_reference.scenarios.scenario import Truth
from trainmon_reference.truth import FILE, SCHEMA

STEPS, EVERY = 400, 4


def losses(seed, nan_from=None):
    """Yield (step, loss) of a quiet run, every 4 steps from 4 to 400; NaN from a step on."""
    rng = random.Random(seed)
    for step in range(EVERY, STEPS + 1, EVERY):
        value = 2 + 2 * math.exp(-step / 60) + rng.gauss(0, 0.02)
        bad = nan_from is not None and step >= nan_from
        yield step, float("nan") if bad else value


def row(step, loss, **more):
    return {"step": step, "loss": loss, **more}


def write_log(folder, rows, config=None):
    folder.mkdir(parents=True, exist_ok=True)
    head = [{"config": config}] if config else []
    (folder / "log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in [*head, *rows]))


def write_truth(folder, scenario, family, half="test", seed=0, **truth):
    """Write the truth: healthy unless a cause is given."""
    folder.mkdir(parents=True, exist_ok=True)
    known = dataclasses.asdict(Truth(**truth))
    head = {"schema": SCHEMA, "scenario": scenario, "family": family, "half": half, "seed": seed, "about": ""}
    label = "faulty" if known["cause"] else "healthy"
    (folder / FILE).write_text(json.dumps({**head, "label": label, **known, "torch": ""}))


def trace(root, name, family, half="test", seed=0, nan_from=None, **truth):
    """Write a whole trace: a quiet run, or one whose loss is NaN from a step on."""
    folder = root / name / f"seed-{seed}"
    write_log(folder, [row(*point) for point in losses(seed, nan_from)])
    write_truth(folder, name, family, half, seed, **truth)
    return folder
