"""How spiky a run is: the spike score, the number of a spike in its run, and a run with many as one story."""

import numpy as np
import pytest

from tests.engine import session
from tests.streams import HEALTHY, base, gaussian, sessions
from trainmon_exporters import render
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.points import chunk
from trainmon_rules.postmortem import report_runs
from trainmon_rules.report import Report
from trainmon_rules.series import Series

KNOWLEDGE = Knowledge.load()


def spiky(at=(300, 400, 500, 600), reports=4, seed=0):
    run = base(seed=seed)
    for start in at:
        for i in range(start, start + reports):
            run["loss"][i] += 3
            run["grad_norm"][i] *= 50
    return run


def report(tags, **kwargs):
    [run] = report_runs(session(tags, **kwargs), KNOWLEDGE)
    return run


def scores(run):
    return {s.series: (s.spikes, s.above, s.reports, s.percent) for s in run.spike_scores}


# ------------------------------------------------------------------------------------------- the score
def test_the_score_is_the_share_of_reports_above_the_baseline():
    assert scores(report(spiky())) == {
        "loss": (4, 16, 700, pytest.approx(100 * 16 / 700, rel=1e-5)),
        "grad_norm": (4, 16, 700, pytest.approx(100 * 16 / 700, rel=1e-5)),
    }


def twin(values):
    """The score a point at a time: how many lie above the threshold that held before them."""
    s, above = Series("x", "train_loss", "s", 0), 0
    for i, v in enumerate(values):
        s.extend(chunk("x", [i], [v], row=[i]))
        for b in s.blocks():
            above += b.baseline is not None and v - b.baseline.level > b.baseline.threshold
    return above


@pytest.mark.parametrize("seed", range(6))
def test_it_agrees_with_its_slow_twin(seed):
    rng = np.random.default_rng(seed)
    x = 2 + 0.02 * rng.standard_t(4, 1500)
    for at in range(100, 1500, 70):
        x[at : at + rng.integers(1, 6)] += rng.uniform(0.2, 3)
    assert report({"loss": x}).spike_scores[0].above == twin(x) > 10


@pytest.mark.parametrize("cuts", [(), (301,), (302, 403, 404, 405), range(1, 700)])
def test_what_a_spike_says_of_those_before_it_is_known_when_it_is_decided(cuts):
    s = sessions(spiky(), cuts)
    told = [f.evidence for f in s.runs[0].findings.values() if f.rule == "loss-spike"]
    assert [e["spikes so far"] for e in told] == [1, 2, 3, 4]
    expected = [100 * n / i for n, i in ((2, 302), (6, 402), (10, 502), (14, 602))]
    assert [e["spike score in percent"] for e in told] == pytest.approx(expected)


def test_not_finite_reports_are_reports_but_no_spikes():
    run = spiky()
    run["loss"][350] = float("nan")
    assert scores(report(run))["loss"][:3] == (4, 16, 700)


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_noise_has_next_to_none(name):
    for seed in range(3):
        for s in report(HEALTHY[name](5_000, seed)).spike_scores:
            assert s.percent <= 0.4, (seed, s)


def test_a_run_has_one_score_over_its_attempts_and_counts_on():
    loss = 2 + np.random.default_rng(0).normal(0, 0.03, 1400)
    for start in (300, 400, 800, 900):
        loss[start : start + 4] += 3
    run = report({"loss": loss}, step=np.r_[np.arange(700), np.arange(500, 1200)])
    assert run.attempts == 2
    assert scores(run)["loss"] == (4, 16, 1400, pytest.approx(100 * 16 / 1400, rel=1e-5))
    told = [i for i in run.incidents if i.symptom == "loss-spike"]
    assert [i.evidence["spikes so far"] for i in told] == [1, 2, 3, 4]
    assert "for the 4th time in this run" in told[-1].summary
    assert told[-1].attempt == 2


def test_a_source_that_does_not_speak_for_its_role_has_no_score():
    s = session({"loss": gaussian(300, 0)["loss"]})
    s.open("twin", rank=1)
    s.runs[0].sources.append("twin")
    [run] = report_runs(s, KNOWLEDGE)
    assert [score.series for score in run.spike_scores] == ["loss"]


# ------------------------------------------------------------------------------------------- one story
def flat(text):
    return " ".join(text.split())


def test_many_spikes_are_one_story_on_the_terminal_and_all_of_them_in_json():
    at = (120, 180, 270, 330, 425, 485, 580, 640)  # at equal distances they would be teeth of a sawtooth
    run = report(spiky(at))
    text = render(Report((run,)), "text")
    spikes = [i.id for i in run.incidents if i.symptom == "loss-spike"]
    assert len(spikes) == len(set(spikes)) == 8
    assert text.count("WARNING loss-spike, recovered, the first of 8") == 1
    assert "and again  7 times between steps 180 and 640, recovered each time" in text
    assert text.count("loss jumped") == 1
    assert "WARNING  loss-spike on loss 8 times since step 120, recovered each time" in text
    assert "In all: 8 spikes in loss (spike score 4.6 % of its reports), 8 spikes in grad_norm" in " ".join(
        text.split()
    )
    page = render(Report((run,)), "markdown")
    assert "### 1. warning: loss-spike, the first of 8" in page
    assert "**And again** 7 times between steps 180 and 640, recovered each time." in page


def test_two_are_told_each_and_one_that_did_not_come_back_is_no_repetition():
    text = render(Report((report(spiky((300, 500))),)), "text")
    assert text.count("WARNING loss-spike, recovered") == 2
    assert "and again" not in text
    run = spiky((200, 300, 400))
    run["loss"][550:] = [v + 0.5 for v in run["loss"][550:]]
    text = render(Report((report(run),)), "text")
    assert "WARNING loss-spike, recovered, the first of 3" in text
    assert "not recovered" in text


def test_a_quiet_run_says_nothing_of_spikes():
    run = report(gaussian(2_000, 0))
    assert all(s.spikes == 0 for s in run.spike_scores)
    assert "spike" not in render(Report((run,)), "text")
