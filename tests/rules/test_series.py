"""Series, baseline and history against obvious twins, and what must survive in them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon_rules.points import chunk
from trainmon_rules.series import WINDOW, Series, block_end
from trainmon_rules.series.history import CELLS, History


def feed(series, values, sizes=(), steps=None):
    """Feed values in pieces of the given sizes and return every block's (start, over, baseline)."""
    steps = np.arange(len(values)) if steps is None else steps
    out, at = [], 0
    for size in [*sizes, len(values)]:
        stop = min(at + size, len(values))
        if stop > at:
            series.extend(chunk("x", steps[at:stop], values[at:stop], row=np.arange(at, stop)))
            out += [(b.start + i, bool(b.over[i]), b.baseline) for b in series.blocks() for i in range(len(b))]
        at = stop
    return out


@given(st.integers(0, 999), st.lists(st.integers(1, 300), max_size=12))
@settings(max_examples=40)
def test_the_baseline_does_not_depend_on_the_chunks(seed, sizes):
    rng = np.random.default_rng(seed)
    values = 2 + rng.standard_t(3, 700) * 0.1
    values[rng.integers(0, 700, 5)] = [np.nan, np.inf, -np.inf, 1e300, 9]
    assert feed(Series("x", "train_loss", "s", 0), values, sizes) == feed(Series("x", "train_loss", "s", 0), values)


def test_blocks_tile_the_index():
    index = 0
    while index < 20_000:
        end = block_end(index)
        assert index < end <= index + 256
        assert all(block_end(i) == end for i in range(index, end))
        index = end


def test_one_bad_point_does_not_blind_the_baseline():
    rng = np.random.default_rng(0)
    clean = 2 + rng.normal(0, 0.05, 400)
    for bad in (np.nan, np.inf, -np.inf, 1e300):
        values = clean.copy()
        values[200] = bad
        values[250:253] = 5.0
        flagged = [i for i, over, _ in feed(Series("x", "train_loss", "s", 0), values) if over]
        assert {250, 251, 252} <= set(flagged)


def test_flagged_points_stay_out_and_a_lasting_shift_is_accepted():
    rng = np.random.default_rng(1)
    values = np.r_[2 + rng.normal(0, 0.05, 200), 6 + rng.normal(0, 0.05, 400)]
    blocks = feed(Series("x", "train_loss", "s", 0), values)
    during = [b for i, _, b in blocks if 210 <= i < 320]
    after = [b for i, _, b in blocks if i >= 400]
    assert all(b.level == pytest.approx(2, abs=0.2) for b in during)
    assert all(b.level == pytest.approx(6, abs=0.2) for b in after)


def test_the_window_is_bounded_and_the_ring_looks_back_512():
    series = Series("x", "train_loss", "s", 0)
    feed(series, np.random.default_rng(2).normal(2, 0.1, 5000), [7] * 700)
    assert len(series._window) == WINDOW
    assert len(series.before(series.count, 512)) == 512
    assert len(series._value) < 1100


def test_a_falling_loss_is_never_flagged_and_a_rising_reward_neither():
    falling = 10 * 0.97 ** np.arange(300)
    assert not any(over for _, over, _ in feed(Series("x", "train_loss", "s", 0, direction=1), falling))
    assert not any(over for _, over, _ in feed(Series("x", "reward", "s", 0, direction=-1), -falling))


def test_a_new_attempt_starts_from_the_baseline_below_its_step():
    old = Series("x", "train_loss", "s", 0)
    feed(old, np.r_[np.full(100, 2.0), np.full(50, 9.0)] + np.random.default_rng(3).normal(0, 0.01, 150))
    new = Series("x", "train_loss", "s", 1)
    new.inherit(old, 100)
    assert new.baseline is not None
    assert new.baseline.level == pytest.approx(2.0, abs=0.05)


def history_twin(values, width):
    """Every full cell of `width` points, the obvious way."""
    n = len(values) // width
    out = []
    for cell in np.asarray(values[: n * width]).reshape(n, width):
        good = cell[np.isfinite(cell)]
        out.append(
            (len(good), good.mean() if len(good) else 0.0, min(good, default=np.inf), max(good, default=-np.inf))
        )
    return out


@given(st.integers(1, 3000), st.lists(st.integers(1, 999), max_size=10), st.integers(0, 99))
@settings(max_examples=60)
def test_history_agrees_with_its_twin_for_any_chunks(n, sizes, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 1, n)
    values[rng.random(n) < 0.05] = np.nan
    h, at = History(), 0
    for size in [*sizes, n]:
        stop = min(n, at + size)
        h.extend(np.arange(at, stop), values[at:stop])
        at = max(at, stop)
    once = History()
    once.extend(np.arange(n), values)
    assert np.array_equal(h.mean, once.mean)
    assert len(h) <= CELLS
    twin = history_twin(values, h.width)
    assert h.count.tolist() == [t[0] for t in twin]
    assert h.mean == pytest.approx([t[1] for t in twin])
    assert h.low.tolist() == [t[2] for t in twin]
    assert h.high.tolist() == [t[3] for t in twin]
    assert h.first_step.tolist() == [i * h.width for i in range(len(twin))]
