"""Numbers in sentences: short, and without an exponent where a person would write none."""

from __future__ import annotations

import math


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
