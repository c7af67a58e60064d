"""What holds for every peer."""

import pytest

from tests.reference.peers.runs import INF, NAN, points, run
from trainmon_reference.peers import PEERS
from trainmon_rules.roles import RoleTable
from trainmon_rules.rules import SYMPTOMS

ROLES = set(RoleTable.load().roles)
BY_NAME = pytest.mark.parametrize("peer", PEERS, ids=lambda p: p.name)


def test_no_two_have_one_name():
    assert len({p.name for p in PEERS}) == len(PEERS) == 13


@BY_NAME
def test_it_claims_symptoms_reads_roles_and_names_its_source(peer):
    assert peer.claims and set(peer.claims) <= set(SYMPTOMS)
    assert peer.reads and set(peer.reads) <= ROLES
    assert len(peer.source) > 10
    assert type(peer).__doc__


@BY_NAME
@pytest.mark.parametrize("values", [[], [1.0], [NAN] * 400, [INF] * 400, [1e308, -1e308] * 200, [0.0] * 400])
def test_it_minds_no_numbers(peer, values):
    for seconds in (None, 60.0):
        series = {role: points(values, seconds=seconds) for role in ("train_loss", "val_loss", "grad_norm")}
        alarms = peer.alarms(run(400, 10, **series))
        assert [a.step for a in alarms] == sorted(a.step for a in alarms)
        assert {symptom for a in alarms for symptom in a.means} <= set(peer.claims)


@BY_NAME
def test_a_run_without_its_series_gives_no_alarm(peer):
    assert peer.alarms(run(learning_rate=[1.0] * 300)) == []


def test_parameters_are_told_as_published():
    told = {p.name: p.parameters for p in PEERS}
    assert told["OLMo-core 128/6σ"] == "window_size=128, threshold_std=6.0"
    assert told["Keras TerminateOnNaN"] == ""
    assert told["Lightning EarlyStopping"] == "patience=3, min_delta=0.0, check_finite=True"
