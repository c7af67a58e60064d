"""The interface of a detector, and what most of them need.

A detector is made once for a rule and a series, is shown the series' points in order, a `Block` at a time,
and yields findings. It owns scalars; windows, baseline and history belong to the series. It must give the same
findings however the points were cut into blocks' parts: decide per point (elementwise tests, counters) or at
block boundaries (`Block.start` and `block_end`), never at a chunk's edge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

from trainmon_rules.findings import Finding, Severity, State
from trainmon_rules.series import Block, Series, View
from trainmon_rules.vocabulary import RunSettings


@dataclass(frozen=True, slots=True)
class Rule:
    """A detector with its parameters, severity and symptom: one entry of `data/rules.yaml`.

    `roles` are the roles whose series it judges; `companions` the roles it reads beside them where they are
    logged; `needs` those without which it is blind; `hold` (`for` in the file) the number of further reports
    over which a finding must last before anyone hears of it; `fixed` says that the severity is a user's word, which
    no finding of the rule changes; `origin` is the user's file that changed or added it last, "" for none.
    """

    name: str
    detector: str
    roles: tuple[str, ...]
    symptom: str
    severity: Severity
    family: str
    companions: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    hold: int = 0
    fixed: bool = False
    parameters: tuple[tuple[str, Any], ...] = ()
    enabled: bool = True
    origin: str = ""


class Peer(Protocol):
    """The companions of a series: others of its attempt, as of one of its points.

    That is: records up to the same one in the same source, points up to the same moment in others.
    """

    def __call__(self, role: str, block: Block, at: int, n: int) -> View:
        """Return the last `n` points of the role's first series as of the block's point `at`; empty if none."""

    def every(self, role: str, block: Block, at: int, n: int) -> list[tuple[str, View]]:
        """Return tag and last `n` points of each of the role's series that had any by then."""


class Detector:
    """Base of all detectors.

    Subclasses set `name`, declare a frozen dataclass `Params` whose fields are the parameters with their
    defaults, and implement `update`. `across` marks a detector whose companions may live in another source:
    it is shown a point only once those sources have reached it.
    """

    name: ClassVar[str]
    across: ClassVar[bool] = False
    params: Any  # subclasses narrow it to their Params
    least: int = 0  # reports without which it can say nothing
    open: Finding | None = None  # the episode that goes on

    @dataclass(frozen=True, slots=True)
    class Params:
        """No parameters."""

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        self.rule = rule
        self.series = series
        self.peer = peer
        self.settings = settings
        self.params = self.Params(**dict(rule.parameters)) if self.name else None

    def update(self, block: Block) -> Iterable[Finding]:
        """Take the next points and yield new or changed findings."""
        raise NotImplementedError

    def standing(self) -> Finding | None:
        """Return the finding that is open, with its numbers as of the last point judged; None if there is none.

        Reports show this one; events are sent for what `update` yields only.
        """
        return self.open

    def setting(self, name: str) -> Any:
        """Return a setting of the run in the vocabulary's name, None where neither the log nor the user says it.

        As known now: what stands later in the log isn't, so ask when deciding.
        """
        return self.settings.get(name)

    def blind(self) -> str:
        """Return what it has lacked so far to judge at all, for a person; "" if nothing.

        A role that isn't logged is the rule's matter (`needs`); this is about the rest: too few reports, no wall
        time, a setting that only the user knows.
        """
        return f"fewer than {self.least} reports are logged" if self.series.count < self.least else ""

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """Return the detector's parameters with their defaults."""
        return {f.name: f.default for f in fields(cls.Params)}

    def finding(
        self,
        block: Block,
        at: int,
        summary: str,
        evidence: dict[str, Any],
        onset_step: int | None = None,
        onset_time: float | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """Make a finding decided at the block's point `at`; onset defaults to that point."""
        step, time, index = int(block.step[at]), float(block.time[at]), block.start + at
        return Finding(
            rule=self.rule.name,
            symptom=self.rule.symptom,
            family=self.rule.family,
            severity=self.rule.severity if severity is None else severity,
            source=self.series.source,
            tag=self.series.tag,
            role=self.series.role,
            attempt=self.series.attempt,
            onset_step=step if onset_step is None else onset_step,
            detected_step=step,
            last_step=step,
            index=index,
            row=int(block.row[at]),
            interval=self.series.interval_at(index),
            summary=summary,
            onset_time=time if onset_time is None else onset_time,
            detected_time=time,
            evidence=evidence,
        )


def resolved(finding: Finding, step: int, recovery: str) -> Finding:
    """Return the finding closed at `step`."""
    return finding.changed(state=State.RESOLVED, resolved_step=step, recovery=recovery)
