"""What a detector says: findings, with the words for how bad and how it ended."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import Any


class Severity(enum.IntEnum):
    """How bad it is. Only `CRITICAL` pages a person."""

    INFO = 1  # listed in the report, sent to nobody
    WARNING = 2  # sent
    CRITICAL = 3  # stop and look now

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def parse(cls, text: str) -> Severity:
        """Return the severity of that name; ValueError if there is none."""
        try:
            return cls[text.upper()]
        except KeyError:
            raise ValueError(f"severity {text!r} is not one of info, warning, critical") from None


class State(enum.StrEnum):
    """Where an incident is in its life."""

    FIRING = "firing"  # it is going on
    RESOLVED = "resolved"  # it is over: the series came back, or settled where it is (see `Recovery`)
    ENDED = "ended"  # the run (or its attempt) ended while it was going on


class Recovery(enum.StrEnum):
    """How much of what was lost came back."""

    RECOVERED = "recovered"
    PARTLY = "partly"  # at least half of the rise, not all of it
    NOT = "not"  # less than half


FindingKey = tuple[str, str, str, int, int]
"""What stays the same over an episode's life: rule, source, tag, attempt and index."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One episode that one rule saw on one series.

    A detector yields a finding when it first decides, and again, with the same `key`, whenever the episode
    changes (it got worse, it recovered). `detected_*` is the last point the first decision needed and never
    changes; `onset_step` may be dated back.

    Attributes
    ----------
    rule, symptom, family : str
        From the rule.
    source, tag, attempt
        The series.
    onset_step, detected_step : int
        Steps; `last_step` is the last step at which the condition held.
    index : int
        Index in its series of the point that decided.
    interval : int
        Steps between two reports of the series at that time.
    evidence : dict of str to float or str
        The numbers behind the decision, by readable name.
    summary : str
        One sentence for a person.
    recovery : str or None
        How it ended, in words, once it has.

    A finding whose rise can be graded says so in its evidence: `recovery` is the word of a `Recovery`.
    """

    rule: str
    symptom: str
    family: str
    severity: Severity
    source: str
    tag: str
    role: str
    attempt: int
    onset_step: int
    detected_step: int
    last_step: int
    index: int
    row: int
    interval: int
    summary: str
    onset_time: float = float("nan")
    detected_time: float = float("nan")
    evidence: dict[str, Any] = field(default_factory=dict)
    state: State = State.FIRING
    resolved_step: int | None = None
    recovery: str | None = None

    @property
    def key(self) -> FindingKey:
        """What stays the same over an episode's life."""
        return (self.rule, self.source, self.tag, self.attempt, self.index)

    @property
    def grade(self) -> Recovery | None:
        """How much came back; of a finding that doesn't grade it all, once it is over; None while it isn't known."""
        said = self.evidence.get("recovery")
        if said is not None:
            return Recovery(said)
        return Recovery.RECOVERED if self.state is State.RESOLVED else None

    @property
    def is_back(self) -> bool:
        """Whether it is over and all of it came back."""
        return self.state is State.RESOLVED and self.grade is Recovery.RECOVERED

    def changed(self, **changes: Any) -> Finding:
        """Return the finding with some fields replaced."""
        return replace(self, **changes)
