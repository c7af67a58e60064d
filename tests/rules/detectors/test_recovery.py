"""Spikes graded by recovery: recovered, partly, not; one finding from its first report to its last."""

import numpy as np
import pytest

from tests.engine import findings, incidents, session
from trainmon_rules.detectors.recovery import grade, graded, share_back
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.findings import Recovery, Severity, State
from trainmon_rules.postmortem import report_runs

SINCE = np.arange(800)


def healthy(n=1200, seed=0, sigma=0.05):
    """A loss that begins at 10.4 and has come to 1.7 by report 400."""
    return 1.7 + 8.7 * np.exp(-np.arange(n) / 60) + np.random.default_rng(seed).normal(0, sigma, n)


def spiked(rise, seed=0, **kwargs):
    """The healthy loss with `rise` (a number, or one for each report) added from report 400 on."""
    x = healthy(seed=seed, **kwargs)
    x[400:] += rise
    return x


def spike(x, n=None):
    """The loss-spike finding after the first `n` reports."""
    [f] = [f for f in session({"loss": x[:n]}).runs[0].findings.values() if f.rule == "loss-spike"]
    return f


def event(x):
    """The one incident that is more than a note (a loss that stands still at last is one)."""
    [i] = [i for i in incidents({"loss": x}) if i.severity > Severity.INFO]
    return i


def fading(peak, rest=0.0, over=8.0):
    return rest + (peak - rest) * np.exp(-SINCE / over)


# ------------------------------------------------------------------------------------------- the three grades
@pytest.mark.parametrize("seed", range(4))
def test_a_spike_that_comes_back_says_after_how_many_reports(seed):
    f = spike(spiked(np.where(SINCE < 9, 2.0, 0.0), seed))
    assert (f.grade, f.state, f.resolved_step) == (Recovery.RECOVERED, State.RESOLVED, 409)
    assert f.recovery == "loss is back at its level after 9 reports"
    assert f.evidence["recovery"] == "recovered"
    assert (f.evidence["reports to recover"], f.evidence["share of the rise back"]) == (9, 1.0)
    assert f.is_back


@pytest.mark.parametrize("seed", range(4))
def test_one_that_settles_between_its_level_and_the_peak_is_partly_recovered(seed):
    f = spike(spiked(fading(3.0, rest=0.5), seed))
    assert (f.grade, str(f.severity), f.is_back) == (Recovery.PARTLY, "warning", False)
    assert f.evidence["level now"] == pytest.approx(2.2, abs=0.05)
    assert f.evidence["share of the rise back"] == pytest.approx(0.84, abs=0.03)
    assert f.evidence["share of progress lost"] == pytest.approx(0.5 / 8.5, abs=0.01)
    assert "and came back only to 2." in f.summary
    assert f.recovery.startswith("partly recovered: 8")
    assert (f.state, f.resolved_step) == (State.RESOLVED, 549)


@pytest.mark.parametrize("seed", range(4))
def test_one_that_stays_near_its_peak_is_not_recovered(seed):
    f = spike(spiked(0.8, seed))
    assert (f.grade, str(f.severity), f.is_back) == (Recovery.NOT, "warning", False)
    assert "and stays at " in f.summary
    assert f.recovery.startswith("not recovered: ")
    assert f.evidence["share of the rise back"] < 0.25


def test_it_is_graded_after_fifty_reports_and_not_before():
    x = spiked(fading(3.0, rest=0.5))
    assert spike(x, 449).grade is None
    then = spike(x, 450)
    assert (then.grade, then.state) == (Recovery.PARTLY, State.ENDED)
    assert then.key == spike(x, 402).key == spike(x).key


def test_a_grade_is_not_final_while_it_goes_on():
    x = spiked(np.where(SINCE < 100, 2.0, 0.0))
    assert spike(x, 460).grade is Recovery.NOT
    late = spike(x)
    assert (late.grade, late.recovery) == (Recovery.RECOVERED, "loss is back at its level after 100 reports")


def test_the_end_of_the_log_grades_by_its_last_reports():
    x = spiked(np.where(SINCE < 70, 2.0, 0.6))
    assert spike(x, 460).evidence["level now"] == pytest.approx(3.7, abs=0.1)
    assert spike(x, 520).evidence["level now"] == pytest.approx(2.3, abs=0.1)
    assert (spike(x, 460).grade, spike(x, 520).grade) == (Recovery.NOT, Recovery.PARTLY)


def test_asking_for_the_report_changes_nothing():
    """What stands is a view: a session that was asked in between ends like one that was not."""
    x = spiked(fading(3.0, rest=0.5))
    asked = session({"loss": x})
    for _ in range(3):
        asked.refresh()
    assert [f.evidence for f in asked.runs[0].findings.values()] == [
        f.evidence for f in session({"loss": x}).runs[0].findings.values()
    ]


def test_a_single_high_report_in_a_sparse_log_stays_a_note():
    x = spiked(np.where(SINCE < 1, 2.0, 0.0))
    [f] = findings("loss-spike", {"loss": x}, step=np.arange(1200) * 50)
    assert f == ("info", 20000, 20000, "resolved")


def test_a_log_that_begins_in_mid_run_has_no_progress_to_lose():
    x = 2.2 + np.random.default_rng(3).normal(0, 0.05, 1200)
    x[400:] += 0.8
    assert "share of progress lost" not in spike(x).evidence


def test_a_gradient_norm_is_graded_by_its_logarithm():
    norm = 0.5 * np.exp(np.random.default_rng(1).normal(0, 0.2, 1200))
    norm[400:410] *= 1000
    norm[410:] *= 6  # a quarter of the way in its logarithm is left, half a percent in its value
    [f] = [f for f in session({"grad_norm": norm}).runs[0].findings.values() if f.rule == "grad-spike"]
    assert f.grade is Recovery.PARTLY
    assert f.evidence["share of the rise back"] == pytest.approx(0.74, abs=0.03)
    assert f.evidence["level now"] == pytest.approx(3.0, abs=0.3)


# ------------------------------------------------------------------------------------------- with divergence
@pytest.mark.parametrize(
    ("rise", "name", "grade"),
    [
        (np.where(SINCE < 9, 2.0, 0.0), "loss-spike", "recovered"),
        (fading(5.0, over=30.0), "loss-spike", "recovered"),
        (fading(6.0, rest=2.0), "divergence", "partly"),
        (6.0, "divergence", "not"),
        (np.minimum(0.1 * SINCE, 8), "divergence", "not"),
    ],
)
def test_the_incident_has_one_name_and_one_grade(rise, name, grade):
    i = event(spiked(rise))
    assert (i.symptom, str(i.grade)) == (name, grade)


def test_the_incident_keeps_its_id_whatever_becomes_of_it():
    x = spiked(6.0)
    ids = {event(x[:n]).id for n in (402, 430, 460, 600, 1200)}
    assert len(ids) == 1


def test_what_was_seen_last_on_a_series_decides():
    """It wasn't back after 150 reports and was given up; in the end all of it came back."""
    i = event(spiked(fading(4.5, over=150.0)))
    grades = {f.rule: str(f.grade) for f in i.findings if f.family == "instability"}
    assert grades == {"loss-spike": "partly", "divergence": "recovered"}
    assert (i.symptom, str(i.grade)) == ("loss-spike", "recovered")
    assert i.lead.rule == "divergence"


def test_a_rise_that_is_over_pages_nobody_for_what_it_was():
    """Half of the progress was gone for thirty reports; when it could have been critical most of it was back."""
    rise = np.where(SINCE < 30, 6.0, 0.6)
    assert event(spiked(rise)).severity is Severity.WARNING
    assert event(spiked(np.where(SINCE < 60, 6.0, 0.6))).severity is Severity.CRITICAL


def test_divergence_says_when_most_of_it_came_back():
    x = spiked(np.where(SINCE < 60, 6.0, 1.5))
    [f] = [f for f in event(x).findings if f.rule == "divergence"]
    assert f.grade is Recovery.PARTLY
    assert "and came back only to about 3.2" in f.summary
    assert f.evidence["share of the rise back"] == pytest.approx(0.75, abs=0.05)


def test_the_report_says_how_much_is_back_of_what_goes_on():
    reported = [
        i
        for i in report_runs(session({"loss": spiked(np.where(SINCE < 60, 6.0, 1.5))}), Knowledge.load())[0].incidents
        if i.severity != "info"
    ]
    [i] = reported
    assert (i.state, i.grade, i.resolved_step) == ("ended", "partly", None)
    assert i.recovery.startswith("partly recovered: 7")


@pytest.mark.parametrize(("rise", "back"), [(fading(1.5, rest=0.6), True), (np.where(SINCE < 9, 2.0, 0.0), False)])
def test_who_lost_something_for_good_is_sent_back_to_a_checkpoint(rise, back):
    """A rise that leaves 7 % of the progress is no divergence; what it lost is lost all the same."""
    [i] = [
        i
        for i in report_runs(session({"loss": spiked(rise)}), Knowledge.load())[0].incidents
        if i.symptom == "loss-spike"
    ]
    going_back = "Go back to the last checkpoint before step 400" in i.fixes[0].action
    assert going_back is back
    assert i.fixes[0].action.startswith("Let it run") is not back
    assert i.fixes[0].change == ({"skip_batches": 100} if back else None)


# ------------------------------------------------------------------------------------------- the measures
def test_the_measures():
    assert share_back(2.0, 5.0, 2.0) == 1.0
    assert share_back(2.0, 5.0, 4.0) == pytest.approx(1 / 3)
    assert share_back(2.0, 5.0, 7.0) == 0.0
    assert share_back(2.0, 2.0, 2.0) == share_back(2.0, np.inf, 3.0) == 0.0
    assert (grade(0.5), grade(0.49)) == (Recovery.PARTLY, Recovery.NOT)
    known = {"recovery": "partly", "share of the rise back": 0.5, "share of progress lost": 0.25}
    assert graded(2.0, 6.0, 4.0, start=10.0) == known
    for start in (2.0, 3.0, np.nan):  # nothing learned before, less than what is lost, not known
        assert "share of progress lost" not in graded(2.0, 6.0, 4.0, start=start)
