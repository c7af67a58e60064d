"""The peers beside us: each on its own symptoms, and over all."""

from __future__ import annotations

from collections.abc import Collection

from trainmon.evaluating.alarms import Alarm
from trainmon.evaluating.intervals import rate
from trainmon.evaluating.scoring import Verdicts, family_of, faulty, healthy, precision, recall
from trainmon_reference.peers import Peer
from trainmon_rules.evaluation import Contest, Estimate, PeerScore


def peer_score(peer: Peer, theirs: Verdicts, ours: Verdicts) -> PeerScore:
    """Return a peer beside us."""
    own, overall = contest(theirs, ours, peer.claims), contest(theirs, ours)
    return PeerScore(
        peer=peer.name,
        source=peer.source,
        parameters=peer.parameters,
        reads=peer.reads,
        symptoms=peer.claims,
        compared=overall.found > 0,
        held=own.our_found >= own.found and _value(own.our_false_alarms_per_run) <= _value(own.false_alarms_per_run),
        ahead=overall.our_found > overall.found,
        own=own,
        overall=overall,
    )


def contest(theirs: Verdicts, ours: Verdicts, symptoms: Collection[str] = ()) -> Contest:
    """Return both on the faulty runs of these symptoms (of all if none is named), and on all healthy runs.

    False alarms count that may be of these symptoms: ours of others don't count against a peer that can't have any.
    """

    def concerns(alarm: Alarm) -> bool:
        return not symptoms or not set(symptoms).isdisjoint(alarm.symptoms)

    def disturbed(verdicts: Verdicts) -> Estimate:
        return rate((family_of(v), sum(map(concerns, v.false)), 1) for v in healthy(verdicts))

    runs, our_runs = faulty(theirs, symptoms), faulty(ours, symptoms)
    return Contest(
        runs=len(runs),
        families=len({family_of(v) for v in runs}),
        found=sum(v.hit is not None for v in runs),
        recall=recall(runs),
        precision=precision([*runs, *healthy(theirs)], concerns),
        false_alarms_per_run=disturbed(theirs),
        our_found=sum(v.hit is not None for v in our_runs),
        our_recall=recall(our_runs),
        our_precision=precision([*our_runs, *healthy(ours)], concerns),
        our_false_alarms_per_run=disturbed(ours),
    )


def _value(estimate: Estimate) -> float:
    return estimate.value or 0.0
