"""One cause is one incident, whatever rules saw it, by whichever names: combinations on the real engine."""

import numpy as np
import pytest

from tests.engine import incidents
from trainmon_rules.findings import Severity

SEEDS = range(3)


def learning(seed=0, n=1200):
    rng, t = np.random.default_rng(seed), np.arange(n)
    return {
        "loss": 2 + 3 * np.exp(-t / 200) + 0.8 * (1 + t / 50) ** -0.4 + rng.normal(0, 0.03, n),
        "grad_norm": 0.4 * np.exp(rng.normal(0, 0.2, n)),
        "lr": 1e-3 * np.minimum(1, (t + 1) / 60) * (0.55 + 0.45 * np.cos(np.pi * t / n)),
    }


def with_validation(run, every=10):
    n = len(run["loss"])
    return {**run, "val_loss": [run["loss"][i] + 0.1 if i % every == every - 1 else None for i in range(n)]}


def names(found):
    return [(i.symptom, str(i.severity)) for i in found]


@pytest.mark.parametrize("seed", SEEDS)
def test_from_a_gradient_spike_to_nan_is_one_story(seed):
    run = learning(seed)
    since = np.arange(600)
    run["grad_norm"][600:] *= 1 + np.minimum(3.0 ** (since + 1), 3000)
    run["loss"][604:] += 1 + np.minimum(0.1 * since[4:], 5)
    run["loss"][800:] = run["grad_norm"][800:] = np.nan
    [i] = incidents(run)
    assert names([i]) == [("nonfinite", "critical")]
    assert [p.symptom for p in i.precursors] == ["grad-spike", "grad-explosion", "loss-spike", "divergence"]
    assert i.onset.onset_step == 600


@pytest.mark.parametrize("seed", SEEDS)
def test_a_spike_that_came_back_and_the_break_that_followed_soon_are_one(seed):
    run = learning(seed)
    run["grad_norm"][600:608] *= 40
    run["loss"][602:610] += 2
    run["grad_norm"][640:] *= 50
    run["loss"][645:] += np.minimum(0.05 * np.arange(555), 5)
    run["loss"][900:] = np.nan
    [i] = incidents(run)
    assert names([i]) == [("nonfinite", "critical")]
    assert (i.onset.onset_step, i.precursors[0].symptom) == (600, "grad-spike")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("later", [0, 10])
def test_nan_in_a_component_and_in_the_total_is_one(seed, later):
    run = learning(seed)
    run["loss_cls"], run["loss_box"] = 0.6 * run["loss"], 0.4 * run["loss"]
    run["loss_cls"][600:] = run["loss"][600 + later :] = np.nan
    [i] = incidents(run)
    assert names([i]) == [("nonfinite", "critical")]
    assert set(i.series) == {"loss", "loss_cls"}
    assert i.onset.tag == ("loss_cls" if later else "loss")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("every", [10, 50])
def test_training_and_validation_that_diverge_together_are_one(seed, every):
    run = learning(seed)
    run["loss"][600:] += np.minimum(0.02 * np.arange(600), 5)
    [i] = incidents(with_validation(run, every))
    assert names([i]) == [("divergence", "critical")]
    assert set(i.series) == {"loss", "val_loss"}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_that_is_not_finite_hides_what_follows_from_it(seed):
    run = with_validation(learning(seed))
    n = len(run["loss"])
    run["accuracy"] = [0.1 if i > 600 else 0.3 + 0.5 * i / n for i in range(n)]
    run["loss"][600:] = run["grad_norm"][600:] = np.nan
    [i] = incidents(run)
    assert names([i]) == [("nonfinite", "critical")]
    assert i.symptoms <= {"nonfinite", "divergence"}  # the accuracy fell, in the same event


@pytest.mark.parametrize("seed", SEEDS)
def test_a_spike_during_a_plateau_is_another_event_and_explains_none_that_it_came_back_from(seed):
    run = learning(seed)
    rng = np.random.default_rng(seed)
    run["loss"] = 2 + 3 * np.exp(-np.arange(1200) / 40) + rng.normal(0, 0.03, 1200)
    run["loss"][900:906] += 2
    run["lr"] = np.full(1200, 1e-3)
    found = incidents(run)
    assert names(found) == [("plateau", "info"), ("loss-spike", "warning")]
    run["loss"][900:906] -= 2
    run["loss"][300:306] += 2  # long before the standstill is seen
    found = incidents(run)
    assert sorted(names(found)) == [("loss-spike", "warning"), ("plateau", "info")]
    assert str(next(i for i in found if i.symptom == "loss-spike").grade) == "recovered"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_spike_right_at_a_resume_is_one_in_its_attempt(seed):
    run = learning(seed)
    again = {k: v[600:].copy() for k, v in run.items()}
    again["loss"][:6] += 1.5
    again["grad_norm"][:6] *= 20
    tags = {k: np.r_[run[k][:700], again[k]] for k in run}
    [i] = incidents(tags, step=np.r_[np.arange(700), np.arange(600, 1200)])
    assert (i.symptom, i.attempt, i.onset.onset_step, str(i.grade)) == ("loss-spike", 1, 600, "recovered")


@pytest.mark.parametrize("seed", SEEDS)
def test_two_spikes_far_apart_are_two(seed):
    run = learning(seed)
    for at in (500, 900):
        run["loss"][at : at + 5] += 2
        run["grad_norm"][at - 1 : at + 5] *= 30
    found = incidents(run)
    assert names(found) == [("loss-spike", "warning")] * 2
    assert [i.onset.onset_step for i in found] == [499, 899]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_announced_stays_known_by_its_id(seed):
    """Fed in twelve pieces, no id that was ever listed is listed beside another of the same event at the end."""
    run = learning(seed)
    run["grad_norm"][600:660] *= 40
    run["loss"][602:640] += np.linspace(3, 0.2, 38)
    run["loss"][700:] += np.minimum(0.05 * np.arange(500), 5)
    whole = {i.id for i in incidents(run)}
    for n in range(100, 1201, 100):
        part = [i for i in incidents({k: v[:n] for k, v in run.items()}) if i.severity > Severity.INFO]
        assert {i.id for i in part} <= whole


def sawtooth(seed, n=1000, epoch=100):
    rng = np.random.default_rng(seed)
    teeth = np.tile(np.linspace(0.3, -0.3, epoch), n // epoch)
    return {"loss": 2 + 6 * np.exp(-np.arange(n) / 150) + teeth + rng.normal(0, 0.03, n), "epoch": np.arange(n) / epoch}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_teeth_of_a_sawtooth_are_one_incident_from_the_first_of_them_on(seed):
    [i] = incidents(sawtooth(seed))
    assert names([i]) == [("periodic", "warning")]
    assert i.onset.onset_step == 200
    assert i.precursors == ()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_spike_between_the_teeth_is_an_event_of_its_own(seed):
    run = sawtooth(seed, n=2000, epoch=200)
    run["loss"][1300:1306] += 3
    assert names(incidents(run)) == [("periodic", "warning"), ("loss-spike", "warning")]
