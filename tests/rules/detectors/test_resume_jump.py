"""resume-jump: the loss after a resume beside the level that the attempt before had left."""

import numpy as np
import pytest

from tests.ailing_rates import weights_lost
from tests.columns import Columns
from tests.schedules import logged, with_loss
from tests.streams import HEALTHY, findings, sessions
from trainmon_rules.findings import Severity

RULE = "resume-jump"


def resumed(change, resume=3000, every=1, seed=0):
    """A healthy run, resumed 10 % back; `change(loss as it should be, reports since the resume)` from there on."""
    run = with_loss(logged("cosine", every=every, resume=resume), seed)
    n = resume // every
    run["loss"][n:] = [change(x, i) for i, x in enumerate(run["loss"][n:])]
    return run


def found(run):
    return [
        (f.evidence["form"], str(f.severity), f.onset_step, f.detected_step, f.resolved_step)
        for f in findings(run, RULE)
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("every", [1, 10])
def test_a_model_from_nothing_is_said_at_the_eighth_report(seed, every):
    start = with_loss(logged("cosine", every=every), seed)["loss"]
    [(form, severity, onset, detected, _)] = found(resumed(lambda x, i: start[min(i, 300)], every=every, seed=seed))
    assert (form, severity, onset, detected) == ("as at the start", "warning", 2700 + every, 2700 + 8 * every)


@pytest.mark.parametrize("seed", range(5))
def test_a_hump_is_said_at_the_eighth_report_and_over_when_it_is_back(seed):
    [(form, severity, onset, detected, back)] = found(resumed(lambda x, i: x + 0.4 * np.exp(-i / 300), seed=seed))
    assert (form, severity, onset, detected) == ("above", "warning", 2701, 2708)
    assert 3000 < back < 3400


@pytest.mark.parametrize("seed", range(5))
def test_a_small_lasting_rise_takes_up_to_thirty_two_reports(seed):
    [(form, severity, onset, detected, back)] = found(resumed(lambda x, i: x + 0.1, seed=seed))
    assert (form, severity, onset) == ("above", "warning", 2701)
    assert detected in (2708, 2732)
    assert back is None or back > 3200  # by then the loss has come down so far by itself


def test_below_five_percent_it_is_an_info():
    run = resumed(lambda x, i: x + 0.05)
    run["loss"] = [1.4 + 0.2 * (x - 1.4) for x in run["loss"][:3000]] + [
        1.45 + 0.2 * (x - 1.4) for x in run["loss"][3000:]
    ]
    [f] = findings(run, RULE)
    assert f.severity is Severity.INFO
    assert f.evidence["rise"] < 0.05 * f.evidence["level before"]


def test_the_finding_says_both_levels():
    [f] = findings(weights_lost(), RULE)
    assert f.summary == (
        "loss is higher after the resume at step 360, 2.914 (as at the start: 2.97), than it was before, 0.7479"
    )


# ------------------------------------------------------------------------------------------------ look-alikes
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("resume", [60, 300, 1000, 3000])
def test_a_clean_resume_is_quiet(seed, resume):
    rng = np.random.default_rng(100 + seed)
    assert found(resumed(lambda x, i: x + rng.normal(0, 0.03), resume, seed=seed)) == []


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("resume", [100, 1000, 3000])
def test_a_few_worse_reports_are_quiet(seed, resume):
    assert found(resumed(lambda x, i: x + 0.5 * np.exp(-i), resume, seed=seed)) == []


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("back", [20, 200, 350])
def test_an_older_checkpoint_is_compared_with_its_own_step(seed, back):
    """Resumed while the loss still falls fast: it is higher than the last one, but not than it was there."""
    step = [*range(400), *range(back, 800)]
    loss = 1 + 2 * np.exp(-np.array(step) / 100) + np.random.default_rng(seed).normal(0, 0.02, len(step))
    assert found(Columns({"loss": loss.tolist()}, step)) == []


@pytest.mark.parametrize("seed", range(5))
def test_what_the_attempt_before_had_at_the_same_steps_is_no_matter_of_the_resume(seed):
    """A harder part of the data: both attempts are higher there."""
    step = [*range(600), *range(500, 900)]
    at = np.array(step)
    loss = 2 + 0.3 * (at >= 500) + np.random.default_rng(seed).normal(0, 0.02, len(step))
    assert found(Columns({"loss": loss.tolist()}, step)) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_resume_after_a_blow_up_is_compared_with_what_was_before_it(seed):
    step = [*range(600), *range(500, 900)]
    loss = 2 + np.random.default_rng(seed).normal(0, 0.02, len(step))
    loss[520:600] = 9.0
    assert found(Columns({"loss": loss.tolist()}, step)) == []


@pytest.mark.parametrize("name", HEALTHY)
def test_the_noise_of_healthy_runs_is_none(name):
    for seed in range(10):
        before, after = HEALTHY[name](900, seed), HEALTHY[name](900, 500 + seed)
        stop, back = 200 + 40 * seed, 150 + 30 * seed
        loss = [*before["loss"][:stop], *after["loss"][back:]]
        assert found(Columns({"loss": loss}, [*range(stop), *range(back, 900)])) == [], seed


def test_too_few_reports_before_say_nothing():
    step = [100, 200, 300, 400, 500, 300, 400, 500, 600, 700, 800, 900]
    assert found(Columns({"loss": [2.0] * 5 + [9.0] * 7}, step)) == []


@pytest.mark.parametrize("bad", [float("nan"), None, float("inf")])
def test_gaps_after_the_resume_only_delay_it(bad):
    run = weights_lost()
    run["loss"][400:405] = [bad] * 5
    [(form, _, onset, detected, _)] = found(run)
    assert (form, onset, detected) == ("as at the start", 365, 372)


# ---------------------------------------------------------------------------------------------------- incidents
def test_the_jump_gives_its_name_to_the_incident_that_a_spike_began():
    [incident] = sessions(weights_lost()).runs[0].incidents
    assert (incident.symptom, incident.attempt) == ("resume-jump", 1)
    assert incident.symptoms == {"resume-jump", "loss-spike"}


def test_a_schedule_that_started_over_explains_the_jump():
    run = resumed(lambda x, i: x + 0.4 * np.exp(-i / 300))
    run["lr"][3000:] = run["lr"][: len(run["lr"]) - 3000]
    [incident] = sessions(run).runs[0].incidents
    assert incident.symptom == "lr-schedule"  # it goes on; the loss has come back
    assert incident.symptoms == {"lr-schedule", "resume-jump", "loss-spike"}
