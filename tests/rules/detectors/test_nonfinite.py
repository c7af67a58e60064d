"""nonfinite: grading, the Hugging Face artefact, and what an fp16 scaler does by design."""

import numpy as np
import pytest

from tests.engine import findings, session

RULE = "nonfinite"
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_the_first_one_is_a_warning_at_once(bad):
    assert findings(RULE, {"loss": [2.0, 1.9, bad, 1.8]}) == [("warning", 2, 2, "resolved")]


def test_the_third_in_a_row_is_critical():
    assert findings(RULE, {"loss": [2.0, NAN, NAN, 1.8]})[0][0] == "warning"
    assert findings(RULE, {"loss": [2.0, NAN, NAN, NAN]})[0][0] == "critical"


def test_a_gradient_that_is_not_finite_either_makes_it_critical_at_once():
    assert findings(RULE, {"loss": [2.0, NAN], "grad_norm": [1.0, INF]})[0][0] == "critical"


@pytest.mark.parametrize("masked", [0.0, 1.234])
def test_a_trainer_that_hides_nan_is_seen_through(masked):
    rows = {"loss": [2.0, 1.9, *[masked] * 6], "grad_norm": [1.0, 1.1, *[NAN] * 6]}
    [(severity, onset, _, state)] = findings(RULE, rows)
    assert (severity, onset, state) == ("critical", 2, "ended")


def test_the_summary_of_the_artefact_says_so():
    s = session({"loss": [0.0] * 4, "grad_norm": [NAN] * 4})
    assert any("hides the NaN" in f.summary for f in s.runs[0].findings.values())


def test_lone_gradient_overflows_are_silent():
    g = np.ones(100)
    g[::9] = INF
    assert findings(RULE, {"loss": 2 - np.arange(100) / 100, "grad_norm": g}) == []


def test_fp16_overflows_at_the_start_are_silent_beside_a_loss_scale():
    n = 100
    rows = {
        "loss": 2 - np.arange(n) / n,
        "grad_norm": np.r_[[NAN] * 12, np.ones(n - 12)],
        "loss_scale": np.full(n, 2.0**16),
    }
    assert findings(RULE, rows) == []


def test_three_in_a_row_without_a_scaler_are_said():
    rows = {"loss": 2 - np.arange(20) / 20, "grad_norm": [*[1.0] * 10, NAN, NAN, NAN, *[1.0] * 7]}
    assert findings(RULE, rows) == [("warning", 10, 12, "resolved")]


def test_nan_in_a_side_metric_is_not_looked_at():
    assert session({"loss": [2.0] * 9, "explained_variance": [NAN] * 9}).runs[0].findings == {}


def test_absent_is_not_nan():
    assert findings(RULE, {"loss": [2.0, None, None, 1.9]}) == []


def test_a_gradient_that_is_only_ever_zero_or_nan_is_dead():
    rows = {"loss": [208.4, 208.5, 209.2, 208.8], "grad_norm": [0.0, 0.0, NAN, 0.0]}
    assert findings(RULE, rows)[0][:3] == ("critical", 2, 2)
    assert findings(RULE, {**rows, "loss_scale": [1024.0] * 4}) == []


def every_other(n=60, at=20, period=2):
    return [2.0 + 0.01 * (i % 7) if i < at or i % period else NAN for i in range(n)]


def test_every_second_report_not_finite_is_critical_once_it_is_half_of_twenty():
    found = [f for f in session({"loss": every_other()}).runs[0].findings.values() if f.rule == "nonfinite"]
    first = next(f for f in found if str(f.severity) == "critical")
    assert first.detected_step == 38  # the tenth since step 20
    assert "10 of the last 20 reports" in first.summary


def test_every_third_report_not_finite_stays_a_warning():
    found = [f for f in session({"loss": every_other(period=3)}).runs[0].findings.values() if f.rule == "nonfinite"]
    assert {str(f.severity) for f in found} == {"warning"}
