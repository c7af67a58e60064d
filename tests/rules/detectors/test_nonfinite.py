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


# ------------------------------------------------------------------ look-alikes
def test_a_validation_loss_alone_pages_nobody_whole_or_in_parts():
    for tag in ("eval_loss", "val/box_loss"):
        rows = {"loss": 2 - np.arange(20) / 20, tag: [1.0] * 8 + [NAN] * 12}
        assert findings(RULE, rows) == [("warning", 8, 8, "ended")], tag


@pytest.mark.parametrize("seed", range(5))
def test_an_fp16_run_that_overflows_now_and_then_is_silent(seed):
    """Up to a few overflows running, where the scale grows again and again; each is a step that was skipped."""
    rng = np.random.default_rng(seed)
    n = 3000
    g = np.exp(rng.normal(0, 0.3, n))
    for at in rng.integers(0, n - 10, 30):
        g[at : at + rng.integers(1, 7)] = INF
    rows = {"loss": 2 + rng.normal(0, 0.02, n), "grad_norm": g, "loss_scale": np.full(n, 2.0**15)}
    assert findings(RULE, rows) == []


def test_twenty_five_overflows_running_are_told_though_a_scaler_skips_them():
    def told(bad):
        g = np.r_[np.ones(40), np.full(bad, NAN), np.ones(10)]
        rows = {"loss": 2 + 0.01 * np.sin(np.arange(len(g))), "grad_norm": g, "loss_scale": [1024.0] * len(g)}
        return findings(RULE, rows)

    assert told(24) == []
    assert told(25) == [("warning", 40, 64, "resolved")]


def test_signed_and_huge_and_tiny_losses_are_finite():
    for loss in (np.linspace(-1, -3, 50), np.full(50, 1e30), np.full(50, 1e-300), np.zeros(50)):
        assert findings(RULE, {"loss": loss}) == []


def test_a_metric_that_is_not_defined_at_first_is_not_looked_at():
    rows = {"loss": 2 - np.arange(30) / 30, "val/mAP": [NAN] * 20 + [0.1] * 10, "perplexity": [INF] * 5 + [20.0] * 25}
    assert findings(RULE, rows) == []


# ------------------------------------------------------------------ slow twin
def twin(loss):
    """The rule in its obvious form: each run of bad reports, graded by its length, over at the first good one."""
    out, at = [], 0
    while at < len(loss):
        if np.isfinite(loss[at]):
            at += 1
            continue
        end = at
        while end < len(loss) and not np.isfinite(loss[end]):
            end += 1
        often = max(sum(~np.isfinite(loss[max(0, i - 19) : i + 1])) for i in range(at, end)) >= 10
        bad = "critical" if end - at >= 3 or often else "warning"
        out.append((bad, at, at, "resolved" if end < len(loss) else "ended"))
        at = end
    return out


@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_its_slow_twin(seed):
    rng = np.random.default_rng(seed)
    loss = 2 + rng.normal(0, 0.1, 700)
    for at in rng.integers(0, 700, 12):
        loss[at : at + rng.integers(1, 6)] = rng.choice([NAN, INF, -INF])
    assert findings(RULE, {"loss": loss}) == twin(loss)


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
