"""lr-resume: the rate after a resume beside what the attempts before applied at the same steps."""

import numpy as np
import pytest

from tests.ailing_rates import rate_starts_over
from tests.columns import Columns
from tests.schedules import PLAIN, TOTAL, logged
from tests.streams import findings
from trainmon_rules.detectors.resumed import told_before
from trainmon_rules.findings import Severity
from trainmon_rules.points import chunk
from trainmon_rules.series import Series

RULE = "lr-resume"
PEAK = 3e-4


def at(step, shape="cosine"):
    return PEAK * float(PLAIN[shape](np.array([float(step)]))[0])


def resumed(rate, every=10, resume=3000, shape="cosine"):
    """A run that is resumed 10 % back, with `rate(step, steps since the resume)` from there on."""
    run = logged(shape, PEAK, every, resume=resume)
    n = resume // every
    first = int(run.step[n])
    run["lr"][n:] = [rate(int(s), int(s) - first + every) for s in run.step[n:]]
    return run


def found(run):
    return [(f.evidence["form"], str(f.severity), f.onset_step, f.detected_step) for f in findings(run, RULE)]


@pytest.mark.parametrize("every", [1, 10])
@pytest.mark.parametrize("resume", [1000, 3000])
@pytest.mark.parametrize(
    ("rate", "form", "severity"),
    [
        (lambda s, k: at(k), "resume: over again", "warning"),
        (lambda s, k: PEAK * (1 - 0.1 * k / TOTAL), "resume: peak", "warning"),
        (lambda s, k: 2 * at(s), "resume: higher", "warning"),
        (lambda s, k: 0.5 * at(s), "resume: lower", "info"),
        (lambda s, k: at(s) * min(1, k / 150), "resume: warm-up", "info"),
    ],
)
def test_it_is_said_at_the_third_report(every, resume, rate, form, severity):
    back = resume - resume // 10
    got = found(resumed(rate, every, resume))
    assert got == [(form, severity, back + every, back + 3 * every)]


def test_the_finding_names_both_rates():
    [f] = findings(rate_starts_over(), RULE)
    assert f.summary == (
        "lr is 5e-05 at step 360, after a resume, where the attempt before had 0.00064: the schedule has started over"
    )


def test_a_warm_up_that_leads_back_to_the_curve_is_over_there():
    [f] = findings(resumed(lambda s, k: at(s) * min(1, k / 150)), RULE)
    assert (f.severity, f.resolved_step) == (Severity.INFO, 2920)


def test_a_warm_up_that_leads_above_the_curve_becomes_a_warning():
    [f] = findings(resumed(lambda s, k: PEAK * min(1, k / 400)), RULE)
    assert (f.evidence["form"], f.severity) == ("resume: warm-up", Severity.WARNING)


def test_a_run_that_is_extended_after_its_schedule_is_an_info():
    assert found(resumed(lambda s, k: 1e-4, resume=3950)) == [("resume: extended", "info", 3560, 3580)]


def test_an_attempt_that_goes_on_without_an_overlap_is_compared_with_the_last_rate():
    """Resumed twice: the second attempt ends long before the first did, the third has what the first had."""
    step = [*range(1, 1001), *range(800, 860), *range(820, 1400)]
    good = [at(s) for s in step]
    assert found(Columns({"lr": good}, step)) == []
    bad = [*good[:1060], *(3 * r for r in good[1060:])]
    assert found(Columns({"lr": bad}, step)) == [("resume: higher", "warning", 820, 822)]


# ------------------------------------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("shape", PLAIN)
@pytest.mark.parametrize("every", [1, 7, 50, 300])
@pytest.mark.parametrize("resume", [700, 2500, 3900])
def test_the_same_curve_goes_on_quietly(shape, every, resume):
    for places in (None, 6):
        assert found(logged(shape, PEAK, every, places, resume)) == []


def test_reports_at_other_steps_than_before_are_quiet():
    step = [*range(10, 3000, 10), *range(2503, TOTAL, 7)]
    assert found(Columns({"lr": [at(s) for s in step]}, step)) == []


def test_a_resume_far_back_is_compared_with_what_is_remembered_of_it():
    step = [*range(1, 3500), *range(1500, TOTAL)]
    assert found(Columns({"lr": [at(s) for s in step]}, step)) == []
    bad = [at(s) * (1 if i < 3499 else 2) for i, s in enumerate(step)]
    assert found(Columns({"lr": bad}, step)) == [("resume: higher", "warning", 1500, 1502)]


def test_a_single_report_off_the_curve_is_quiet():
    run = resumed(lambda s, k: at(s))
    run["lr"][300] = 0.0
    assert found(run) == []


def test_another_run_that_is_reported_less_often_is_no_resume():
    """Its first step is one interval of its own: nobody can tell that at the first record."""
    step = [*range(10, 130, 10), *range(100, 900, 100)]
    lr = [2.5e-3] * 12 + [2e-3, 4.5e-3, 7e-3] + [1e-2] * 5
    assert found(Columns({"lr": lr}, step)) == []


# ------------------------------------------------------------------------------------------------ what was told
def series_of(*attempts):
    """The series of consecutive attempts, each given as (steps, values)."""
    older = None
    for number, (step, value) in enumerate(attempts):
        s = Series("lr", "learning_rate", "log", number, 0)
        if older is not None:
            s.inherit(older, step[0])
        s.extend(chunk("lr", step, value))
        older = s
    return older


def test_of_each_step_the_last_that_was_told_counts():
    s = series_of((range(100), [1.0] * 100), (range(50, 70), [2.0] * 20), (range(60, 80), [3.0] * 20))
    told = told_before(s)
    assert dict(zip(told.step.tolist(), told.mean.tolist(), strict=True)) == {
        **dict.fromkeys(range(50), 1.0),
        **dict.fromkeys(range(50, 70), 2.0),
    }


def test_a_long_attempt_is_told_in_cells_and_at_last_in_points():
    s = series_of((range(5000), range(5000)), ([4900], [0.0]))
    told = told_before(s)
    assert (told.step[0], told.step[-1]) == (0, 4999)
    assert (np.diff(told.step) > 0).all()
    assert ((told.low <= told.mean) & (told.mean <= told.high)).all()
    for step in (0, 17, 2500, 4400, 4990):
        low, high = told.around(step)
        assert low <= step <= high
    assert told.around(4990) == (4990.0, 4990.0)
    assert told.around(-1) is None
