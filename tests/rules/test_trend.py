"""Trend, ties and the rate against obvious implementations, however the points are cut."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon_rules.points import chunk
from trainmon_rules.series import EMPTY, Series, View, block_end
from trainmon_rules.series.trend import CELLS, Rate, Ties, Trend, next_look, noise, whole


def fed(values, cuts):
    """The blocks of a series that is fed in pieces."""
    series = Series("loss", "train_loss", "log", 0)
    edges = [0, *sorted({c for c in cuts if 0 < c < len(values)}), len(values)]
    for a, b in itertools.pairwise(edges):
        series.extend(chunk("loss", np.arange(a, b) * 10, values[a:b]))
        yield from series.blocks()


def slow_cells(values, ok):
    """Means of equal cells, the width doubled whenever 64 are full; over all points in complete blocks."""
    end = 0
    while block_end(end) <= len(values):
        end = block_end(end)
    width = 1
    while end // width >= CELLS:
        width *= 2
    out = []
    for start in range(0, end - width + 1, width):
        kept = [v for v, k in zip(values[start : start + width], ok[start : start + width], strict=True) if k]
        out.append(sum(kept) / len(kept) if kept else math.nan)
    return width, out


@given(st.integers(1, 3000), st.lists(st.integers(1, 3000), max_size=10), st.integers(0, 100))
@settings(max_examples=30)
def test_cells_are_the_means_of_equal_stretches(n, cuts, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(3, 0.1, n)
    values[rng.random(n) < 0.05] = np.nan
    trend, counted = Trend(), np.zeros(n, bool)
    for block in fed(values, cuts):
        taken = whole(block)
        if taken is not None:
            trend.extend(*taken)
            counted[taken[0].start : taken[0].start + len(taken[0])] = taken[2]
    width, expected = slow_cells(values, counted)
    assert trend.width == width
    assert trend.mean == pytest.approx(expected, nan_ok=True, rel=1e-12)
    assert trend.step == [10 * width * i for i in range(len(expected))]


@given(
    st.lists(st.sampled_from([0.0, 1.0, 1.0, 1.0, math.nan]), min_size=1, max_size=200), st.lists(st.integers(1, 199))
)
@settings(max_examples=60)
def test_ties_are_found_at_the_same_point_however_cut(values, cuts):
    ties, found = Ties(), []
    for block in fed(np.array(values), cuts):
        found += [(block.start + t.at, t.value, t.step, t.before) for t in ties.extend(block, 3)]
    expected, finite = [], [(i, v) for i, v in enumerate(values) if math.isfinite(v)]
    for k in range(2, len(finite)):
        run = [v for _, v in finite[k - 2 : k + 1]]
        longer = k > 2 and finite[k - 3][1] == run[0]
        if len(set(run)) == 1 and not longer:
            expected.append((finite[k][0], run[0], 10 * finite[k - 2][0], k - 2))
    assert found == expected


def test_spikes_and_absurd_lows_stay_out_of_the_trend():
    values = np.full(200, 2.0) + np.random.default_rng(0).normal(0, 0.01, 200)
    values[100], values[150], values[160] = 50.0, -1e300, math.nan
    trend = Trend()
    for block in fed(values, []):
        if (taken := whole(block)) is not None:
            trend.extend(*taken)
    assert np.abs(np.array(trend.mean) - 2.0).max() < 0.05


def test_noise_sees_through_ties_and_outliers():
    rng = np.random.default_rng(1)
    assert noise(rng.normal(0, 1, 64)) == pytest.approx(1.0, abs=0.25)
    mostly_tied = np.where(np.arange(60) % 4 == 0, -47.0, -48.0)
    assert noise(mostly_tied) > 0.2
    with_a_glitch = rng.normal(0, 1, 20)
    with_a_glitch[0] = 1e16
    assert noise(with_a_glitch) < 3


def view(*values):
    v = np.array(values, float)
    return View(0, np.arange(len(v)), np.full(len(v), np.nan), v, np.arange(len(v)))


def test_the_rate_knows_its_peak_and_when_it_last_rose():
    rate = Rate()
    assert not rate.known and rate.alive(0.3)
    rate.look(EMPTY, 5)
    assert not rate.known
    rate.look(view(0.0, 0.1, 0.2), 20)
    rate.look(view(0.2, 0.4, 0.5), 40)
    rate.look(view(0.5, 1e300, math.nan, 0.2), 60)
    assert (rate.peak, rate.last, rate.risen_at) == (0.5, 0.2, 40)
    assert rate.alive(0.3) and not rate.alive(0.5)


def test_looks_become_rarer():
    looks, at = [], 20
    while at < 1_000_000:
        looks.append(at)
        at = next_look(at)
    assert looks[:4] == [20, 21, 23, 25]
    assert len(looks) < 240
