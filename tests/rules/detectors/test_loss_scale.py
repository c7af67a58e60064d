"""loss-scale-collapse: halving away, against the healthy life of an fp16 scaler."""

import numpy as np
import pytest

from tests.engine import findings

RULE = "loss-scale-collapse"


def scales(*parts):
    """Scale values: (value, reports) pairs."""
    return np.concatenate([np.full(n, float(v)) for v, n in parts])


def halving(start, times):
    return [(start / 2**k, 1) for k in range(1, times + 1)]


def test_four_falls_after_settling_are_a_warning():
    x = scales((65536, 60), *halving(65536, 4), (4096, 10))
    assert findings(RULE, {"loss_scale": x}) == [("warning", 60, 63, "ended")]


def test_falling_to_nothing_is_critical():
    x = scales((65536, 60), *halving(65536, 30))
    assert findings(RULE, {"loss_scale": x}) == [("critical", 60, 63, "ended")]


def test_a_log_that_speaks_only_of_overflows_is_judged_by_the_low_end():
    assert findings(RULE, {"loss_scale": [32.0, 16, 8, 4, 2]})[0][0] == "critical"


@pytest.mark.parametrize("values", [[0.00049, 0.00024], [2e-320, 1e-320, 5e-321, 2.5e-321]])
def test_a_dead_scale_needs_no_history(values):
    assert findings(RULE, {"loss_scale": values})[0][0] == "critical"


def test_stuck_at_one_while_every_step_is_skipped():
    assert findings(RULE, {"loss_scale": [1.0] * 5, "skipped_steps": [1, 2, 3, 4, 5]})[0][0] == "critical"


def test_it_resolves_when_the_scale_grows_again():
    x = scales((65536, 60), *halving(65536, 5), (2048, 40), (4096, 40), (8192, 40))
    assert findings(RULE, {"loss_scale": x})[0][3] == "resolved"


@pytest.mark.parametrize(
    "values",
    [
        scales((2.0**32, 1), *halving(2.0**32, 15), (2.0**17, 200)),  # the search at the start
        np.tile(scales((65536, 400), (32768, 400)), 8),  # single falls, growing back
        scales((128, 200), (64, 100), (32, 100), (64, 100)),
        scales((65536, 500)),
        scales((1.0, 500)),  # bf16 with a scaler that does nothing
    ],
)
def test_quiet_on_a_healthy_scaler(values):
    assert findings(RULE, {"loss_scale": values}) == []


def test_a_log_that_speaks_only_of_overflows_is_settled_by_its_loss():
    overflows = [None] * 40 + [32768.0, 16384, 8192, 4096, 2048]
    losses = [2 - i / 50 for i in range(40)] + [None] * 5
    assert findings(RULE, {"loss": losses, "loss_scale": overflows}) == [("warning", 41, 44, "ended")]
    assert findings(RULE, {"loss_scale": overflows[40:]}) == []
