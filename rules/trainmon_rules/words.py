"""Numbers in sentences: short, and without an exponent where a person would write none."""

from __future__ import annotations

import math
from collections.abc import Iterable

_ROLES = {
    "train_loss": "training loss", "loss_component": "training loss", "rl_loss": "training loss",
    "adversarial_loss": "training loss", "value_loss": "training loss", "aux_loss": "training loss",
    "val_loss": "validation loss", "val_loss_component": "validation loss", "val_gap": "validation gap",
    "val_perplexity": "validation perplexity", "train_metric": "training metric", "eval_metric": "evaluation metric",
    "grad_norm": "gradient norm", "kl": "KL divergence", "reward_zero_std": "share of groups with equal rewards",
    "answers_cut": "share of cut answers", "implicit_reward": "reward of chosen answers",
    "activation_sparsity": "share of zero activations", "gpu_util": "GPU utilisation",
    "data_time": "time waiting for data", "data_share": "time waiting for data", "gpu_mem": "GPU memory",
    "gpu_mem_free": "GPU memory", "cpu_mem": "host memory",
}  # fmt: skip


def short(value: float, digits: int = 4) -> str:
    """Return a number with some significant digits: 0.8168, 4,060, 3.4e+10, 2e-05, NaN.

    Parameters
    ----------
    value : float
        Any number.
    digits : int
        Significant digits; a whole number is given whole.
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinity" if value > 0 else "-infinity"
    if value == round(value) and 1000 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    if 1000 <= abs(value) < 1e6:
        return f"{float(f'{value:.{digits}g}'):,.0f}"
    return f"{value:.{digits}g}"


def duration(seconds: float) -> str:
    """Return a length of time as a person says it: 45 s, 18 min, 2.3 h, 3.5 days."""
    units = (("days", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))
    name, size = next((u for u in units if seconds >= 2 * u[1]), units[-1])
    number = seconds / size
    return f"{number:.0f} {name}" if number >= 10 else f"{number:.2g} {name}"


def roles_in_words(roles: Iterable[str], last: str = "or") -> str:
    """Return roles as a person says them, each once: "training loss, validation loss or gradient norm".

    Parameters
    ----------
    roles : iterable of str
        Names of roles.
    last : str
        The word before the last of them.
    """
    words = list(dict.fromkeys(_ROLES.get(r, r.replace("_", " ")) for r in roles))
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def ordinal(n: int) -> str:
    """Return a place in an order: "2nd", "11th", "1,003rd"."""
    last = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{last}"
