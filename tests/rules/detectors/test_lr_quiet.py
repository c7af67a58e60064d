"""Healthy schedules, as frameworks apply and log them, move none of the rules about the rate, announced or not."""

import itertools

import pytest

from tests.columns import Columns
from tests.schedules import PLAIN, TOTAL, announcement, logged, rates, with_loss
from tests.streams import HEALTHY, findings
from trainmon_rules.findings import Severity

WAYS = [*itertools.product((1, 10, 100), (None, 6), (None, 1500, 3000))]  # every, decimals, resumed at
PEAKS = (1e-2, 3e-4, 2e-5)


@pytest.mark.parametrize("shape", PLAIN)
@pytest.mark.parametrize("peak", PEAKS)
def test_a_schedule_as_announced_is_quiet(shape, peak):
    for every, places, resume in WAYS[PEAKS.index(peak) :: len(PEAKS)]:
        run = logged(shape, peak, every, places, resume, announcement(shape, peak))
        assert [f.summary for f in findings(run)] == [], (every, places, resume)


@pytest.mark.parametrize("shape", PLAIN)
def test_a_schedule_that_nobody_announced_is_quiet(shape):
    for every, places, resume in WAYS[::3]:
        run = logged(shape, 3e-4, every, places, resume)
        assert [f.summary for f in findings(run)] == [], (every, places, resume)


@pytest.mark.parametrize("shape", PLAIN)
def test_a_healthy_run_with_its_loss_is_quiet(shape):
    assert [f.summary for f in findings(with_loss(logged(shape, every=10, resume=2000)))] == []


@pytest.mark.parametrize(
    "shape", ["cosine", "cosine_to_a_tenth", "linear", "constant_with_warmup", "wsd", "inverse_sqrt"]
)
@pytest.mark.parametrize("scale", [0.1, 8.0])
def test_a_group_with_a_scaled_rate_is_no_more_than_an_info(shape, scale):
    """A group at a tenth of the rate; a rate multiplied by the number of devices."""
    run = logged(shape, 3e-4, settings=announcement(shape, 3e-4))
    run["lr"] = [scale * x for x in run["lr"]]
    found = findings(run)
    assert [(f.rule, f.severity, f.evidence["form"]) for f in found] == [("lr-declared", Severity.INFO, "another peak")]
    assert found[0].evidence["ratio"] == pytest.approx(scale, rel=0.05)


def test_an_axis_of_epochs_beside_settings_in_steps_is_no_more_than_an_info():
    """A cosine over 4,000 steps, logged once an epoch of 100 and numbered by epochs: 100 times as fast, it seems."""
    step = [*range(100, TOTAL + 1, 100)]
    lr = rates("cosine", 3e-4, step)
    run = Columns({"lr": lr}, [s // 100 for s in step], announcement("cosine", 3e-4))
    assert [f for f in findings(run) if f.severity > Severity.INFO] == []


@pytest.mark.parametrize("name", HEALTHY)
def test_a_clean_resume_is_quiet(name):
    """Resumed at a third, up to a hundred steps back, with the same rate and other noise."""
    for seed in range(10):
        before, after = HEALTHY[name](1200, seed), HEALTHY[name](1200, 1000 + seed)
        back = 400 - 10 * seed
        step = [*range(400), *range(back, 1200)]
        values = {tag: [*before[tag][:400], *after[tag][back:]] for tag in before}
        found = findings(Columns(values, step))
        assert [f.summary for f in found if f.symptom in ("lr-schedule", "resume-jump")] == [], seed
