"""Seeded streams as healthy (and ailing) runs log them, and the engine run over them.

All healthy ones follow the curve on which notes of peers compare rules: exponential plus power decay to about 2.2.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tests.ailing_outcomes import OUTCOMES
from tests.ailing_rates import RATES
from tests.columns import Columns, base
from trainmon_rules.engine import Session
from trainmon_rules.findings import Finding
from trainmon_rules.points import Batch, Params, chunk
from trainmon_rules.state import Settings

SETTINGS = Settings.default()
TIME = "time"
"""A column of this name is the wall time of the rows, no tag."""


def curve(n: int) -> np.ndarray:
    """The healthy course of a language model's loss: 10.8 at first, about 2.2 at the end of 20,000 steps."""
    t = np.arange(n)
    return 1.9 + 5.5 * np.exp(-t / 150) + 3.4 * (1 + t / 60) ** -0.42


def gaussian(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"loss": curve(n) + rng.normal(0, 0.05, n), **_beside(n, rng)}


def student_t(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"loss": curve(n) + 0.05 * rng.standard_t(4, n), **_beside(n, rng)}


def small_batch(n: int, seed: int) -> dict[str, np.ndarray]:
    """Skewed noise of standard deviation 0.3, as tiny batches give."""
    rng = np.random.default_rng(seed)
    return {"loss": curve(n) + 0.3 * (rng.gamma(2.0, 1.0, n) - 2.0) / np.sqrt(2.0), **_beside(n, rng)}


def ar1(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    noise, e = np.zeros(n), rng.normal(0, 0.02, n)
    for i in range(1, n):
        noise[i] = 0.9 * noise[i - 1] + e[i]
    return {"loss": curve(n) + noise, **_beside(n, rng)}


def warm_restarts(n: int, seed: int) -> dict[str, np.ndarray]:
    """Power-law decay; the rate follows cosine cycles that double, and each restart lifts the loss for a while."""
    rng = np.random.default_rng(seed)
    lr, lift, at, period = np.zeros(n), np.zeros(n), 0, 500
    while at < n:
        phase = np.arange(min(period, n - at)) / period
        lr[at : at + period] = 1e-5 + 5e-4 * (1 + np.cos(np.pi * phase))
        if at:
            lift[at : at + period] = 0.25 * np.exp(-phase * 12)
        at, period = at + period, period * 2
    loss = 2.0 + 8.5 * (1 + np.arange(n) / 40) ** -0.6 + lift + rng.normal(0, 0.04, n)
    return {"loss": loss, **_beside(n, rng), "lr": lr}


def step_decay(n: int, seed: int) -> dict[str, np.ndarray]:
    """The rate falls tenfold at half and at three quarters, and the loss drops a little each time."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    lr = 0.1 * np.where(t < n // 2, 1.0, np.where(t < 3 * n // 4, 0.1, 0.01))
    drop = 0.4 * (t >= n // 2) + 0.1 * (t >= 3 * n // 4)
    return {"loss": 1.0 + 1.5 * (1 + t / 50) ** -0.5 - drop + rng.normal(0, 0.04, n), **_beside(n, rng), "lr": lr}


def _beside(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Log-normal gradient norms that fall with the loss, a warm-up of 2 % and a cosine to a tenth."""
    t = np.arange(n)
    warm = max(1, n // 50)
    lr = 3e-4 * np.minimum(1, (t + 1) / warm) * (0.55 + 0.45 * np.cos(np.pi * t / n))
    grad = (0.3 + 3 * np.exp(-t / 200)) * np.exp(rng.normal(0, 0.25, n))
    return {"grad_norm": grad, "lr": lr}


HEALTHY: Mapping[str, Callable[[int, int], dict[str, np.ndarray]]] = {
    f.__name__: f for f in (gaussian, student_t, small_batch, ar1, warm_restarts, step_decay)
}


def batch(columns: Mapping[str, Sequence[float]], start: int = 0, stop: int | None = None, every: int = 1) -> Batch:
    """One batch of the rows `start` to `stop`; `None` and absent rows of a column are left out."""
    chunks = []
    given = columns.get(TIME)
    step = columns.step if isinstance(columns, Columns) else None
    said = columns.settings if isinstance(columns, Columns) and start == 0 else {}
    for tag, values in columns.items():
        if tag == TIME:
            continue
        v = np.array([np.nan if x is None else x for x in values[start:stop]], np.float64)
        there = np.array([x is not None for x in values[start:stop]], np.bool_)
        rows = np.arange(start, start + len(v))[there]
        time = None if given is None else np.array([np.nan if given[r] is None else given[r] for r in rows])
        if len(rows):
            chunks.append(chunk(tag, rows * every if step is None else step[rows], v[there], time, rows))
    return Batch(chunks, [Params(0, said)] if said else [])


def sessions(
    columns: Mapping[str, Sequence[float]],
    cuts: Sequence[int] = (),
    every: int = 1,
    pickled: bool = False,
    settings: Settings = SETTINGS,
) -> Session:
    """Feed the columns to the engine, cut before the given rows; optionally through a snapshot at each cut."""
    n = max(len(v) for v in columns.values())
    session = Session("run", settings)
    session.open("log")
    for a, b in itertools.pairwise([0, *sorted({c for c in cuts if 0 < c < n}), n]):
        session.feed("log", batch(columns, a, b, every))
        if pickled:
            session = pickle.loads(pickle.dumps(session))
    return session


def findings(
    columns: Mapping[str, Sequence[float]], rule: str = "", cuts: Sequence[int] = (), every: int = 1
) -> list[Finding]:
    """The findings of one rule (or all) over the columns, in the order of their detection."""
    runs = sessions(columns, cuts, every).runs
    return [f for r in runs for f in sorted(r.findings.values(), key=lambda f: f.index) if rule in ("", f.rule)]


def steps(found: Sequence[Finding]) -> list[tuple[int, int, int | None]]:
    """Onset, detected and resolved step of each finding."""
    return [(f.onset_step, f.detected_step, f.resolved_step) for f in found]


# ------------------------------------------------------------- ailing: one fault each, at row 300 or from the start
def nonfinite(seed: int = 0) -> dict[str, list[float | None]]:
    run = base(seed=seed)
    run["loss"][300:] = [float("nan")] * 400
    return run


def collapsing_scale(seed: int = 0) -> dict[str, list[float | None]]:
    run = base(seed=seed)
    run["loss_scale"][300:] = [65536.0 * 0.5 ** min(i, 40) for i in range(400)]
    return run


def exploding(seed: int = 0) -> dict[str, list[float | None]]:
    run = base(seed=seed)
    for i in range(300, 700):
        run["grad_norm"][i] *= 500
        run["loss"][i] += 0.002 * (i - 300)
    return run


def growing(seed: int = 0) -> dict[str, list[float | None]]:
    """From step 400 on the norm grows by 5 % a step, up to 150 times, and the loss stays in its noise."""
    run = base(seed=seed)
    factor = np.exp(np.minimum(5.0, 0.05 * np.maximum(0, np.arange(700) - 400)))
    return {**run, "grad_norm": (np.array(run["grad_norm"]) * factor).tolist()}


def bad_start(seed: int = 0) -> dict[str, list[float | None]]:
    """Norms over ten orders of magnitude from the first row, in a run that learns nothing."""
    rng = np.random.default_rng(seed)
    n = 700
    grad = 100 * np.exp(rng.normal(0, 2.5, n))
    grad[0] = 3e10
    return {"loss": (12 + rng.normal(0, 0.2, n)).tolist(), "grad_norm": grad.tolist(), "lr": [1e-4] * n}


def gradient_spike(seed: int = 0) -> dict[str, list[float | None]]:
    run = base(seed=seed)
    for i in range(300, 305):
        run["grad_norm"][i] *= 1000
    return run


def spike(seed: int = 0) -> dict[str, list[float | None]]:
    run = base(seed=seed)
    for i in range(300, 304):
        run["loss"][i] += 3
    return run


def rising(seed: int = 0) -> dict[str, list[float | None]]:
    run = base(seed=seed)
    for i in range(300, 700):
        run["loss"][i] += 0.02 * (i - 300)
    return run


def both_rising(seed: int = 0) -> dict[str, list[float | None]]:
    """Training and validation loss rise together; an evaluation every other row."""
    run = rising(seed)
    loss = run["loss"]
    run["eval_loss"] = [loss[i] + 0.1 if i % 2 else None for i in range(len(loss))]
    return run


def steps_up(seed: int = 0, by: float = 0.3) -> dict[str, list[float | None]]:
    """From row 300 on the loss goes on as before, 0.3 higher: a tenth of its progress."""
    run = base(seed=seed)
    run["loss"][300:] = [x + by for x in run["loss"][300:]]
    return run


def validation_steps_up(seed: int = 0) -> dict[str, list[float | None]]:
    """The same of the validation loss alone, evaluated every other row."""
    run = base(seed=seed)
    loss = run["loss"]
    run["eval_loss"] = [loss[i] + 0.1 + 0.3 * (i >= 300) if i % 2 else None for i in range(len(loss))]
    return run


def thrown_about(seed: int = 0) -> dict[str, list[float | None]]:
    """From row 300 on the loss lies anywhere around 0.9, thirteen times as wide as its batches were before."""
    run = base(seed=seed)
    run["loss"][300:] = (0.9 + np.random.default_rng(seed + 50).normal(0, 0.4, 400)).tolist()
    return run


def thrown_epochs(seed: int = 0, n: int = 60) -> dict[str, list[float | None]]:
    """A row an epoch; validation jumps by a sixth of its level and nothing is learned after the second epoch."""
    rng = np.random.default_rng(seed)
    loss = 0.95 + 0.06 * rng.normal(size=n)
    loss[0] = 1.5
    return {"loss": loss.tolist(), "val_loss": (0.92 + 0.15 * rng.normal(size=n)).tolist()}


def never_learns(seed: int = 0, n: int = 700) -> dict[str, list[float | None]]:
    """The loss of ten classes at chance."""
    rng = np.random.default_rng(seed)
    return {"loss": (2.3026 + rng.normal(0, 0.02, n)).tolist(), "lr": [1e-3] * n}


def stops_learning(seed: int = 0, n: int = 1200) -> dict[str, list[float | None]]:
    """Down to ln 2 in the first hundred rows, and nothing after."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    return {
        "loss": (0.6931 + 0.8 * np.exp(-t / 40) + rng.normal(0, 0.01, n)).tolist(),
        "lr": [1e-3] * n,
    }


def creeps(seed: int = 0, n: int = 1200) -> dict[str, list[float | None]]:
    """0.693 to 0.685 in a straight line."""
    rng = np.random.default_rng(seed)
    return {"loss": (0.693 - 0.008 * np.arange(n) / n + rng.normal(0, 0.0005, n)).tolist(), "lr": [1e-5] * n}


def sorted_epochs(seed: int = 0, n: int = 1200, length: int = 50) -> dict[str, list[float | None]]:
    """Within each epoch of 50 rows the loss falls by 0.6 and begins the next one where it was."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    loss = 0.7 + 1.5 * np.exp(-t / 150) + 0.6 * (0.5 - t % length / length) + rng.normal(0, 0.05, n)
    return {"loss": loss.tolist(), "lr": [1e-3] * n, "epoch": (t / length).tolist()}


def overfits(seed: int = 0, n: int = 800) -> dict[str, list[float | None]]:
    """Validation turns at row 300 while training goes on falling."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    train = 0.05 + 2.0 * np.exp(-t / 200) + rng.normal(0, 0.02, n)
    val = 0.3 + 2.0 * np.exp(-t / 200) + 0.002 * np.maximum(0, t - 300) + rng.normal(0, 0.01, n)
    return {
        "loss": train.tolist(),
        "eval_loss": [float(val[i]) if i % 20 == 19 else None for i in range(n)],
    }


def vanishes(seed: int = 0, n: int = 700) -> dict[str, list[float | None]]:
    """The norm falls ten-thousandfold at row 300, in a run that has learned nothing."""
    rng = np.random.default_rng(seed)
    grad = 1.4 * np.exp(rng.normal(0, 0.3, n))
    grad[300:] *= 1e-4
    return {"loss": (10.47 + rng.normal(0, 0.02, n)).tolist(), "grad_norm": grad.tolist(), "lr": [1e-4] * n}


def timed(seconds: np.ndarray) -> dict[str, list[float | None]]:
    """A healthy run whose reports took so many seconds."""
    run = base(len(seconds))
    run[TIME] = (1.7e9 + np.cumsum(seconds)).tolist()
    return run


def slows_down(seed: int = 0, n: int = 700) -> dict[str, list[float | None]]:
    """A step takes 30 s, and from row 300 on 39 s."""
    rng = np.random.default_rng(seed)
    seconds = np.where(np.arange(n) < 300, 30, 39) * np.exp(rng.normal(0, 0.02, n))
    return {**base(n, seed), "step_time_s": seconds.tolist()}


def hangs(seed: int = 0, n: int = 700) -> dict[str, list[float | None]]:
    """A report every 2 s, and nothing for three hours after row 299."""
    seconds = 2 * np.exp(np.random.default_rng(seed).normal(0, 0.1, n))
    seconds[300] = 3 * 3600
    return timed(seconds)


def pauses(seed: int = 0, n: int = 700) -> dict[str, list[float | None]]:
    """A step of 0.2 s, and every 25th takes a second."""
    seconds = 0.2 * np.exp(np.random.default_rng(seed).normal(0, 0.1, n))
    seconds[24::25] += 0.8
    return timed(seconds)


def waits_for_data(seed: int = 0, n: int = 700) -> dict[str, list[float | None]]:
    rng = np.random.default_rng(seed)
    return {**timed(np.full(n, 5.0)), "gpu.0.gpu": rng.normal(30, 8, n).clip(0, 100).round().tolist()}


def leaks(seed: int = 0, n: int = 700) -> dict[str, list[float | None]]:
    """From 20 GB on, 40 MB more at each step."""
    rng = np.random.default_rng(seed)
    return {**base(n, seed), "gpu_mem_gb": (20 + 0.04 * np.arange(n) + rng.normal(0, 0.2, n)).tolist()}


def masked_labels(seed: int = 0, n: int = 700) -> dict[str, list[float | None]]:
    """From row 400 on loss and gradient norm are exactly 0."""
    return {**base(n, seed), "loss": [*base(n, seed)["loss"][:400], *[0.0] * (n - 400)]}


AILING: Mapping[str, Callable[[int], dict[str, list[float | None]]]] = {
    "nonfinite": nonfinite,
    "loss-scale-collapse": collapsing_scale,
    "grad-start": bad_start,
    "grad-explosion": exploding,
    "grad-growth": growing,
    "grad-spike": gradient_spike,
    "loss-spike": spike,
    "divergence": rising,
    "val-divergence": both_rising,
    "regime-shift": steps_up,
    "val-regime-shift": validation_steps_up,
    "oscillation": thrown_about,
    "val-oscillation": thrown_epochs,
    "flat": never_learns,
    "frozen-loss": masked_labels,
    "plateau": stops_learning,
    "slow": creeps,
    "periodic": sorted_epochs,
    "overfit": overfits,
    "grad-vanishing": vanishes,
    **OUTCOMES,
    "throughput-drop": slows_down,
    "stall": hangs,
    "periodic-stall": pauses,
    "low-utilization": waits_for_data,
    "memory-growth": leaks,
    **RATES,
}
"""For each detector by its name, a run on which it must fire; a new detector adds its own."""
