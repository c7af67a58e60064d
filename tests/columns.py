"""Columns of a run: what the ailing runs begin with, and those whose steps aren't their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


class Columns(dict[str, list[float | None]]):
    """Columns of a run whose steps aren't its rows, or that says its settings at the start."""

    def __init__(
        self,
        columns: Mapping[str, Sequence[float | None]],
        step: Sequence[int] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__({tag: list(values) for tag, values in columns.items()})
        self.step = None if step is None else np.asarray(step, np.int64)
        self.settings = dict(settings or {})


def base(n: int = 700, seed: int = 0) -> dict[str, list[float | None]]:
    """A healthy run with an evaluation every tenth row and a settled loss scale."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    loss = 0.5 + 2.0 * np.exp(-t / 120) + 0.5 * (1 + t / 30) ** -0.5 + rng.normal(0, 0.03, n)
    return {
        "loss": loss.tolist(),
        "grad_norm": (0.5 * np.exp(rng.normal(0, 0.2, n))).tolist(),
        "lr": [1e-3] * n,
        "loss_scale": [65536.0] * n,
        "eval_loss": [float(loss[i]) + 0.1 if i % 10 == 9 else None for i in range(n)],
    }
