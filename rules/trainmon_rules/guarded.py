"""Asking a detector, or for a diagnosis, so that a fault of ours costs one rule on one series, never the run.

A detector that raises is switched off for its series; the report lists its rule as blind, with what was raised. Who
debugs (`TRAINMON_DEBUG=1`, as in the tests) gets the exception itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainmon_rules.debug import debugging
from trainmon_rules.detectors import Detector
from trainmon_rules.diagnosis import Diagnosis, Knowledge, diagnose
from trainmon_rules.findings import Finding
from trainmon_rules.incidents import Incident
from trainmon_rules.series import Block, block_start
from trainmon_rules.state import Failures, Run, Tracked

MAX_FAILURES = 1_000  # a run: of more only the detectors are switched off


def update(failures: Failures, t: Tracked, d: Detector, block: Block) -> Iterator[Finding]:
    """Yield what a detector finds in a block, up to where it fails."""
    try:
        t.series.shown = block.start + len(block)
        yield from d.update(block)
    except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
        view = t.series.before(block_start(block.start) + 1, 1)  # however the block was cut
        _switch_off(failures, t, d, error, int((view.step if len(view) else block.step)[0]))
    finally:
        t.series.shown = None


def standing(failures: Failures, t: Tracked, d: Detector) -> Finding | None:
    """Return what a detector says goes on; None of one that fails."""
    try:
        return d.standing()
    except Exception as error:  # noqa: BLE001
        _switch_off(failures, t, d, error, t.series.last_step)
        return None


def blind(failures: Failures, t: Tracked, d: Detector) -> str:
    """Return what a detector lacks; of one that fails what it raised."""
    try:
        return d.blind()
    except Exception as error:  # noqa: BLE001
        _switch_off(failures, t, d, error, t.series.last_step)
        return fault_of(failures, d.rule.name)


def diagnosis(incident: Incident, run: Run, knowledge: Knowledge) -> Diagnosis:
    """Return an incident's diagnosis; an empty one if that fails."""
    try:
        return diagnose(incident, run, knowledge)
    except Exception as error:  # noqa: BLE001
        lead = incident.lead
        where = (lead.attempt, lead.detected_step, lead.source, lead.tag, lead.rule)
        _note(run.failures, where, error, "its diagnosis ")
        return Diagnosis()


def fault_of(failures: Failures, rule: str) -> str:
    """Return the earliest fault of a rule, for a person; "" if it had none."""
    return next((failures[key] for key in sorted(failures) if key[-1] == rule), "")


def _switch_off(failures: Failures, t: Tracked, d: Detector, error: Exception, step: int) -> None:
    where = (t.series.attempt, step, t.series.source, t.series.tag, d.rule.name)
    _note(failures, where, error, "")
    t.detectors, t.waiting = ([x for x in ds if x is not d] for ds in (t.detectors, t.waiting))


def _note(failures: Failures, where: tuple[int, int, str, str, str], error: Exception, what: str) -> None:
    if debugging():
        raise error
    raised = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    if len(failures) < MAX_FAILURES:
        failures.setdefault(where, f"{what}failed by an internal error at step {where[1]} (please report it): {raised}")
