"""Intervals: families are drawn, not runs; where all agree, each family is one observation."""

import math

import pytest

from trainmon.evaluating.intervals import garwood, quantile, rate, share, wilson
from trainmon_rules.evaluation import Estimate


def families(n, seen, of=1):
    """Return n families of one run each, the first `seen` of them with a count of `of`."""
    return [(i, of if i < seen else 0, of) for i in range(n)]


def test_wilson_and_garwood_are_those_of_the_books():
    assert wilson(1.0, 10) == pytest.approx((10 / (10 + 1.959964**2), 1.0))  # 0.7225
    assert wilson(0.0, 10) == pytest.approx((0.0, 1 - 10 / (10 + 1.959964**2)))
    assert wilson(0.5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert garwood(0) == pytest.approx((0.0, -math.log(0.025)))  # 3.689
    assert garwood(1) == pytest.approx((0.0253, 5.5716), abs=1e-4)
    assert garwood(10) == pytest.approx((4.7954, 18.3904), abs=1e-4)


def test_families_that_differ_give_a_bootstrap():
    found = share(families(40, 20))
    assert (found.value, found.method) == (0.5, "bootstrap")
    # the share of 40 draws of a coin: 0.5 ± 1.96 × 0.079
    assert found.low == pytest.approx(0.345, abs=0.026)
    assert found.high == pytest.approx(0.655, abs=0.026)


def test_two_families_that_disagree_say_nothing():
    assert share([("a", 1, 1), ("b", 0, 1)]) == Estimate(0.5, 0.0, 1.0, "bootstrap")


def test_many_runs_of_few_families_are_few_observations():
    alike = [(family, family < 2, 1) for family in range(4) for _ in range(100)]
    assert share(alike) == share(families(4, 2))


def test_families_that_agree_count_one_each():
    for n in (1, 7):
        runs = [(family, 1, 1) for family in range(n) for _ in range(3)]
        assert share(runs) == Estimate(1.0, *wilson(1.0, n), "wilson")
    two_of_three = [(family, run < 2, 1) for family in range(5) for run in range(3)]
    assert share(two_of_three) == Estimate(2 / 3, *wilson(2 / 3, 5), "wilson")


def test_a_rate_that_is_the_same_in_all_families_is_poisson_a_family():
    runs = [(family, 0, 1) for family in range(4) for _ in range(3)]
    found = rate(runs)
    assert (found.value, found.low, found.method) == (0.0, 0.0, "poisson")
    assert found.high == pytest.approx(3.6889 / 4, abs=1e-4)
    steps = rate([(family, 0, 400.0) for family in range(4) for _ in range(3)], per=1000.0)
    assert steps.high == pytest.approx(3.6889 / 1600 * 1000, abs=1e-3)
    one_each = rate([(family, 1, 1) for family in range(10)])
    assert (one_each.low, one_each.high) == pytest.approx((0.47954, 1.83904), abs=1e-4)


def test_a_rate_may_be_above_one_and_is_per_what_is_asked():
    found = rate([("a", 3, 500), ("b", 0, 500)], per=1000.0)
    assert (found.value, found.low, found.high) == (3.0, 0.0, 6.0)


def test_nothing_measured_is_no_figure():
    for found in (share([]), share([("a", 0, 0)]), rate([]), quantile([], 0.5)):
        assert found == Estimate(None, None, None, "none")


def test_a_quantile_is_a_value_that_occurs():
    values = [("a", 10.0), ("b", 0.0), ("a", 10.0), ("c", 4.0), ("d", 1.0)]
    assert quantile(values, 0.5).value == 4.0
    assert quantile(values, 0.9).value == 10.0
    assert quantile(values[:4], 0.5).value == 4.0  # of 0, 4, 10, 10 the second


def test_the_interval_of_a_quantile_draws_families():
    found = quantile([("a", 1.0), ("b", 5.0)], 0.5)
    assert (found.value, found.low, found.high, found.method) == (1.0, 1.0, 5.0, "bootstrap")
    assert quantile([("a", 2.0), ("b", 2.0)], 0.5) == Estimate(2.0)


def test_the_same_numbers_give_the_same_interval():
    assert share(families(17, 5)) == share(families(17, 5))
