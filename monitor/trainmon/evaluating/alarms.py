"""What somebody was told: an incident of ours, or alarms of a peer's rule, in one form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from trainmon_reference.peers import Alarm as PeerAlarm
from trainmon_rules.incidents import JOIN_REPORTS, JOIN_STEPS
from trainmon_rules.report import IncidentReport

PEERS_OWN = "alarm"
"""Severity of a peer's: it has none."""

_ASKED = re.compile(r"--set (\w+)=")


@dataclass(frozen=True, slots=True)
class Alarm:
    """Somebody was told of something.

    Attributes
    ----------
    symptoms : tuple of str
        All that it may be of; the first names it.
    severity : str
        Of an incident, else `alarm`.
    step : int
        When it was told; steps that a resumed or restarted run trains again are counted on.
    route : str
        Primary route, "" if there is none.
    asks : tuple of str
        Settings that are asked for.
    """

    symptoms: tuple[str, ...]
    severity: str
    step: int
    route: str = ""
    asks: tuple[str, ...] = ()


def alarm_of(incident: IncidentReport, shift: int) -> Alarm:
    """Return an incident as an alarm, its step moved by `shift`."""
    symptoms = (incident.symptom, *(symptom for symptom, _ in incident.others))
    route = next((r.sheet for r in incident.routes if r.rank == "primary"), "")
    asks = tuple(key for question in incident.questions for key in _ASKED.findall(question))
    return Alarm(symptoms, incident.severity, incident.detected_step + shift, route, asks)


def joined(alarms: Iterable[PeerAlarm], interval: int, since: int) -> list[Alarm]:
    """Join a peer's alarms of one kind that follow each other as closely as findings of one incident may.

    One that goes on over the onset of the fault is told anew there, which an incident of ours isn't.
    """
    reach = max(JOIN_STEPS, JOIN_REPORTS * interval)
    told: list[Alarm] = []
    last: dict[tuple[str, ...], int] = {}
    for alarm in alarms:
        before = last.get(alarm.means)
        if before is None or alarm.step - before > reach or before < since <= alarm.step:
            told.append(Alarm(alarm.means, PEERS_OWN, alarm.step))
        last[alarm.means] = alarm.step
    return told
