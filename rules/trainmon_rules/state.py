"""What the engine knows: settings, sources, and runs with their attempts and series.

These are records with the few questions that are asked of them; `engine.Session` is what fills them.
"""

from __future__ import annotations

import math
from collections import ChainMap, Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trainmon_rules.attempts import Splitter
from trainmon_rules.clock import Clock
from trainmon_rules.detectors import Detector, Rule
from trainmon_rules.findings import Finding, FindingKey, State
from trainmon_rules.incidents import Incident, group, visible
from trainmon_rules.points import Problem
from trainmon_rules.roles import RoleTable
from trainmon_rules.rules import load_rules
from trainmon_rules.series import EMPTY, Block, Series, View
from trainmon_rules.vocabulary import RunSettings

Failures = dict[tuple[int, int, str, str, str], str]
"""Faults of ours: attempt, step, source, tag and rule that each befell, and what was raised, in a line."""

ACROSS_RING = 1_000_000  # points a companion keeps while another source lags behind, and a series to be compared
MAX_WHOLE = 64  # series of a session that keep so many points for a comparison
MAX_RUNS = 1_000  # a source; what follows is counted, not kept
MAX_ATTEMPTS = 1_000  # a run
MAX_TAGS = 10_000  # series of a source in an attempt; more are counted, not kept
MAX_SERIES = 50_000  # of a source in all its runs and attempts
MAX_FINDINGS = 2_000  # episodes a run: the first are kept, more are counted
MAX_PROBLEMS = 100  # unreadable records listed a source; more are counted


@dataclass(frozen=True, slots=True)
class Settings:
    """What a session is judged by: the rules, the role table, and answers given by the user (`--set`).

    `off` are the rules that the user switched off; they are known by name only.
    """

    rules: tuple[Rule, ...]
    roles: RoleTable
    answers: Mapping[str, Any] = field(default_factory=dict)
    off: tuple[Rule, ...] = ()

    @classmethod
    def default(cls, answers: Mapping[str, Any] | None = None, roles: Mapping[str, str] | None = None) -> Settings:
        """Return the shipped rules and roles, with a user's answers and tag → role overrides."""
        table = RoleTable.load(roles)
        return cls((), table, dict(answers or {})).judged_by(load_rules(table.roles))

    def judged_by(self, rules: Iterable[Rule]) -> Settings:
        """Return the settings with these rules, as far as they are enabled."""
        every = tuple(rules)
        return replace(self, rules=tuple(r for r in every if r.enabled), off=tuple(r for r in every if not r.enabled))


@dataclass(slots=True, eq=False)
class Tracked:
    """A series with the detectors that judge it."""

    series: Series
    detectors: list[Detector]
    waiting: list[Detector]  # the `across` ones
    queue: list[Block] = field(default_factory=list)  # blocks they haven't been shown


@dataclass(slots=True, eq=False)
class Attempt:
    """The series of one attempt of a run, by (source, tag)."""

    number: int
    first_step: int | None = None
    tracked: dict[tuple[str, str], Tracked] = field(default_factory=dict)
    tags: Counter[str] = field(default_factory=Counter)  # series kept, by source
    clocks: dict[str, Clock] = field(default_factory=dict)  # by source, where there are several
    told: Mapping[str, Source] = field(default_factory=dict, repr=False)  # all sources of the session, by name

    def ordered(self) -> list[Tracked]:
        """Return the series by source as they were opened, then in the order of their first record.

        Never in the order in which sources happened to be read.
        """
        place = {source: i for i, source in enumerate(self.told)}
        return sorted(self.tracked.values(), key=lambda t: place.get(t.series.source, len(place)))

    def of_role(self, role: str, source: str | None = None) -> list[Series]:
        """Return the series of a role, in one source or in all, in the order of `ordered`."""
        if source is not None:
            return [t.series for (src, _), t in self.tracked.items() if src == source and t.series.role == role]
        return [t.series for t in self.ordered() if t.series.role == role]


@dataclass(slots=True, eq=False)
class Run:
    """One training run as far as it is known."""

    name: str
    attempts: list[Attempt] = field(default_factory=list)
    answers: Mapping[str, Any] = field(default_factory=dict)  # of the user; they go before what sources say
    said: dict[str, RunSettings] = field(default_factory=dict)  # hyper-parameters, by source
    findings: dict[FindingKey, Finding] = field(default_factory=dict)
    standing: dict[FindingKey, Finding] = field(default_factory=dict)  # as a report shows them
    ending: set[str] = field(default_factory=set)  # sources that have left it, but of which points still wait
    points: int = 0
    dropped_points: int = 0  # of series over the limit
    dropped_findings: int = 0
    given_up: set[str] = field(default_factory=set)  # rules that waited too long for another source
    failures: Failures = field(default_factory=dict)  # what was switched off because of a fault of ours
    queued: list[tuple[Attempt, Tracked]] = field(default_factory=list)  # series with blocks that wait
    finishes: dict[str, str] = field(default_factory=dict)  # why it is over, by source
    first_step: int | None = None
    last_step: int | None = None
    sources: list[str] = field(default_factory=list)
    told: Mapping[str, Source] = field(default_factory=dict, repr=False)  # all sources of the session, by name
    _last: Finding | None = None  # of the findings, once there are too many: the one that was decided last
    _heard: dict[tuple[Any, ...], int] = field(default_factory=dict)  # index of the last finding, by rule and series

    @property
    def facts(self) -> Mapping[str, Any]:
        """The user's answers, then the run's hyper-parameters, those of the source that was opened first in front."""
        return ChainMap(dict(self.answers), *(self.said[s].raw for s in _in_order(self.said, self.told)))

    def settings_of(self, source: str) -> RunSettings:
        """Return the settings as the source tells them, the user's answers in front."""
        return self.said.setdefault(source, RunSettings(self.answers))

    @property
    def finish(self) -> str | None:
        """Why training is over, as the first source that says so has it; None if none does."""
        return next((self.finishes[s] for s in _in_order(self.finishes, self.told)), None)

    @property
    def roles(self) -> set[str]:
        """The roles that its series have, in any attempt."""
        return {t.series.role for attempt in self.attempts for t in attempt.tracked.values()} - {""}

    def tags_by_role(self, order: Sequence[str]) -> dict[str, list[str]]:
        """Return the tags of each role ("" for the unmapped), by source in the given order, then as they appeared."""
        place = {source: i for i, source in enumerate(order)}
        out: dict[str, dict[str, None]] = {}
        for attempt in self.attempts:
            for (_source, _), t in sorted(attempt.tracked.items(), key=lambda item: place[item[0][0]]):
                out.setdefault(t.series.role, {})[t.series.tag] = None
        return {role: list(tags) for role, tags in sorted(out.items())}

    @property
    def incidents(self) -> list[Incident]:
        """The run's incidents now, in the order of their detection.

        Of several sources that tell the same run, the one of the lowest rank speaks for each of its roles.
        """
        now = (self.standing.get(key, f) for key, f in self.findings.items())
        return group(self.name, visible(f for f in now if not self._spoken_for(f)))

    def _spoken_for(self, f: Finding) -> bool:
        """Whether a richer source has the finding's role, and hadn't ended when it began."""
        told = self.told
        if f.source not in told or not told[f.source].rank:
            return False
        richer = [
            t.series
            for a in self.attempts
            for t in a.tracked.values()
            if t.series.role == f.role and told[t.series.source].rank < told[f.source].rank
        ]
        return any(not told[s.source].closed or s.last_step >= f.onset_step for s in richer)

    def keep(self, found: Finding) -> None:
        """Take a finding, or what became of it; of too many those that were decided first are kept.

        Which are the first doesn't depend on the order in which they come.
        """
        *series, index = found.key
        is_new = index > self._heard.get(tuple(series), -1)
        if is_new:
            self._heard[tuple(series)] = index
        if found.key in self.findings or len(self.findings) < MAX_FINDINGS:
            self.findings[found.key] = found
            return
        if self._last is None:
            self._last = max(self.findings.values(), key=_decided)
        if _decided(found) < _decided(self._last):
            del self.findings[self._last.key]
            self.findings[found.key] = found
            self._last, is_new = None, True  # the one that made room is counted
        self.dropped_findings += is_new

    def end(self, sources: Collection[str]) -> None:
        """Say that nothing more will come from these sources: what is firing in them ends with them."""
        for key, f in self.findings.items():
            if f.source in sources and f.state is State.FIRING:
                self.findings[key] = self.standing.pop(key, f).changed(state=State.ENDED)

    def attempt(self, number: int) -> Attempt:
        """Return the attempt, opening it (and those before) if need be."""
        while len(self.attempts) <= number:
            self.attempts.append(Attempt(len(self.attempts), told=self.told))
        return self.attempts[number]


def _decided(f: Finding) -> tuple[int, int, str, str, str, int]:
    return (f.attempt, f.detected_step, f.source, f.tag, f.rule, f.index)


def _in_order(names: Iterable[str], order: Iterable[str]) -> list[str]:
    place = {name: i for i, name in enumerate(order)}
    return sorted(names, key=lambda name: place.get(name, len(place)))


@dataclass(slots=True, eq=False)
class Source:
    """One file as the engine knows it."""

    name: str
    prefix: str = ""
    rank: int = 0  # 0 speaks first, see `Session.open`
    splitter: Splitter = field(default_factory=Splitter)
    keys: dict[str, None] = field(default_factory=dict)  # tags seen in this run of the source, in order
    roles: dict[str, str] = field(default_factory=dict)
    facts: dict[str, None] = field(default_factory=dict)  # names of hyper-parameters seen in this run of the source
    run: int = 0
    attempt: int = 0
    timed: bool | None = None  # whether the run's first record has a wall time; None before it
    reached_step: float = -math.inf  # in this attempt
    reached_time: float = -math.inf  # in this run
    closed: bool = False
    problems: list[Problem] = field(default_factory=list)
    problem_count: int = 0
    series: int = 0
    left_out: set[str] = field(default_factory=set)  # what it has too many of


@dataclass(slots=True)
class Peers:
    """Finds a detector's companions in its attempt (a class, so that a session can be pickled).

    Series come in the order of their first record, sources in the order in which they were opened; which of
    them exist yet never matters, because a view holds only what was logged by the moment asked for.
    """

    attempt: Attempt
    sources: tuple[str, ...]

    def __call__(self, role: str, block: Block, at: int, n: int) -> View:
        """Return the last `n` points of the role's series as of the block's point `at`; empty if there was none."""
        return next((view for _, view in self._views(role, block, at, n)), EMPTY)

    def every(self, role: str, block: Block, at: int, n: int) -> list[tuple[str, View]]:
        """Return tag and last `n` points of each of the role's series that had any by the block's point `at`."""
        return list(self._views(role, block, at, n))

    def _views(self, role: str, block: Block, at: int, n: int) -> Iterator[tuple[str, View]]:
        for source in self.sources:
            for series in self.attempt.of_role(role, source):
                row = int(block.row[at])
                if source != block.series.source:
                    clock = self.attempt.clocks.get(source)  # none before the session had a second source
                    row = clock.row_at(int(block.step[at]), float(block.time[at])) if clock else -1
                view = series.asof_row(row, n)
                if len(view):
                    yield series.tag, view
