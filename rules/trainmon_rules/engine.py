"""The engine: points of one log in, incidents out. `replay` and `watch` are this, fed differently.

A `Session` is what one path (or one `Monitor`) resolves to: one or more sources that tell the same story. A
source may hold several runs one after the other; run k of each source is the same run. Rules over one series
and its neighbours in the same source are judged as points arrive. A rule over several sources (`across`) is
judged at a point only when every other open source has reached that point's moment, so the order in which
sources are read never matters.
"""

from __future__ import annotations

import itertools
import math
from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainmon_rules.attempts import Segment, Splitter
from trainmon_rules.clock import Clock
from trainmon_rules.detectors import DETECTORS, Detector, Rule
from trainmon_rules.detectors.hold import Held
from trainmon_rules.findings import Finding, State
from trainmon_rules.incidents import Incident, group, visible
from trainmon_rules.points import Batch, Boundary, Chunk, Finish, Params, Problem
from trainmon_rules.roles import RoleTable
from trainmon_rules.rules import load_rules
from trainmon_rules.series import EMPTY, Block, Series, View

ACROSS_RING = 1_000_000  # points a companion keeps while another source of the run lags behind
MAX_RUNS = 1_000  # a source; what follows is counted, not kept
MAX_ATTEMPTS = 1_000  # a run
MAX_TAGS = 10_000  # series of a source in an attempt; more are counted, not kept
MAX_SERIES = 50_000  # of a source in all its runs and attempts
MAX_FINDINGS = 2_000  # episodes a run: the first are kept, more are counted
MAX_PROBLEMS = 100  # unreadable records listed a source; more are counted


@dataclass(frozen=True, slots=True)
class Settings:
    """What a session is judged by: the rules, the role table, and answers given by the user (`--set`)."""

    rules: tuple[Rule, ...]
    roles: RoleTable
    answers: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def default(cls, answers: Mapping[str, Any] | None = None, roles: Mapping[str, str] | None = None) -> Settings:
        """Return the shipped rules and roles, with a user's answers and tag → role overrides."""
        table = RoleTable.load(roles)
        return cls(tuple(load_rules(table.roles)), table, dict(answers or {}))


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
    said: dict[str, dict[str, Any]] = field(default_factory=dict)  # hyper-parameters, by source
    findings: dict[tuple[str, str, str, int, int], Finding] = field(default_factory=dict)
    points: int = 0
    dropped_points: int = 0  # of series over the limit
    dropped_findings: int = 0
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
        return ChainMap(dict(self.answers), *(self.said[s] for s in _in_order(self.said, self.told)))

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
        return group(self.name, visible(f for f in self.findings.values() if not self._spoken_for(f)))

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
    points: int = 0
    records: int = 0


class Session:
    """Feeds points of one story through roles, series, detectors and incidents.

    Parameters
    ----------
    name : str
        The run's name; further runs in the same sources are called `name#2`, `name#3`, ….
    settings : Settings
        Rules, roles and answers.
    """

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self.settings = settings
        self.sources: dict[str, Source] = {}
        self.runs: list[Run] = []
        self.fixed = {r.name: r.severity for r in settings.rules if r.fixed}

    # ------------------------------------------------------------------ in
    def open(self, source: str, prefix: str = "", rank: int = 0) -> None:
        """Announce a source, so that rules over several sources know whom to wait for.

        Parameters
        ----------
        source : str
            Its name, unique in the session.
        prefix : str
            The directory that prefixes its tags.
        rank : int
            Where several sources tell the same run, what a source finds on a role is heard only if no open source
            of a lower rank has that role.
        """
        self.sources.setdefault(source, Source(source, prefix, rank))

    def begin(self) -> None:
        """Open the first run, though no point has come: a log that can be read but holds none is a run all the same."""
        if not self.runs and self.sources:
            self._run(0, next(iter(self.sources.values())))

    def feed(self, source: str, batch: Batch) -> list[Run]:
        """Take a batch of a source; return the runs whose findings changed."""
        src = self.sources.setdefault(source, Source(source))
        src.problem_count += len(batch.problems)
        src.problems.extend(batch.problems[: max(0, MAX_PROBLEMS - len(src.problems))])
        changed: dict[int, Run] = {}
        with np.errstate(all="ignore"):  # numbers like ±1e308 are data; what they overflow to is looked at
            for segment in src.splitter.split(batch):
                if self._is_too_many(src, segment):
                    continue
                run = self._run(segment.run, src)
                if self._take(src, run, segment):
                    changed[segment.run] = run
                if run.queued and self._drain(segment.run, run):  # while the companions still hold what was then
                    changed[segment.run] = run
            changed.update({k: r for k, r in enumerate(self.runs) if r.queued and self._drain(k, r)})
        return list(changed.values())

    def close(self, source: str) -> list[Run]:
        """Say that nothing more will come from a source, so that nobody waits for it."""
        src = self.sources[source]
        with np.errstate(all="ignore"):
            for segment in src.splitter.rest():
                if not self._is_too_many(src, segment):
                    self._take(src, self._run(segment.run, src), segment)
            src.closed = True
            return [r for k, r in enumerate(self.runs) if r.queued and self._drain(k, r)]

    def end(self) -> list[Run]:
        """Close what is open: the job is over. Firing findings become ended; nothing else is decided."""
        for name in self.sources:
            self.close(name)
        self.refresh()
        for run in self.runs:
            for key, f in run.findings.items():
                if f.state is State.FIRING:
                    run.findings[key] = f.changed(state=State.ENDED)
        return self.runs

    def refresh(self) -> None:
        """Bring the findings that go on up to their latest numbers; nothing is decided, no event is due."""
        for run in self.runs:
            for attempt in run.attempts:
                for t in attempt.tracked.values():
                    for d in (*t.detectors, *t.waiting):
                        found = d.standing()
                        if found is not None and (said := run.findings.get(found.key)) and said.state is State.FIRING:
                            run.findings[found.key] = self._as_told(found)

    def _as_told(self, found: Finding) -> Finding:
        """Return the finding with the severity that the user gave its rule, if any."""
        severity = self.fixed.get(found.rule)
        return found if severity is None else found.changed(severity=severity)

    # ------------------------------------------------------------------ one segment
    def _is_too_many(self, src: Source, segment: Segment) -> bool:
        """Whether the source has started over too often to keep this; said once."""
        if segment.run < MAX_RUNS and segment.attempt < MAX_ATTEMPTS:
            return False
        what = f"{MAX_RUNS:,} runs" if segment.run >= MAX_RUNS else f"{MAX_ATTEMPTS:,} attempts of one run"
        if what not in src.left_out:
            src.left_out.add(what)
            src.problem_count += 1
            src.problems.insert(0, Problem(f"holds more than {what}; the others are left out"))
        return True

    def _run(self, number: int, src: Source) -> Run:
        while len(self.runs) <= number:
            n = len(self.runs)
            name = self.name if n == 0 else f"{self.name}#{n + 1}"
            self.runs.append(Run(name, answers=self.settings.answers, told=self.sources))
            self.runs[-1].attempt(0)
        if src.run != number:
            self._end_run(src)
            src.run, src.keys, src.roles, src.facts = number, {}, {}, {}
            src.attempt, src.timed = 0, None
            src.reached_step = src.reached_time = -math.inf
        run = self.runs[number]
        if src.name not in run.sources:
            run.sources.append(src.name)
        return run

    def _end_run(self, src: Source) -> None:
        """The source has begun another run: what was firing in the old one has ended with it."""
        run = self.runs[src.run]
        self.refresh()
        for key, f in run.findings.items():
            if f.source == src.name and f.state is State.FIRING:
                run.findings[key] = f.changed(state=State.ENDED)

    def _take(self, src: Source, run: Run, segment: Segment) -> bool:
        for event in segment.events:
            if isinstance(event, Params):
                src.facts.update(dict.fromkeys(event.values))
                run.said.setdefault(src.name, {}).update(event.values)
            elif isinstance(event, Finish):
                run.finishes[src.name] = event.why
            elif isinstance(event, Boundary):
                continue
        if not segment.chunks:
            return False
        chunks = sorted(segment.chunks, key=lambda c: (int(c.row[0]), c.tag))
        self._name_roles(src, chunks)
        attempt = run.attempt(segment.attempt)
        self._tick(src, attempt, chunks)
        touched = [t for c in chunks if (t := self._extend(src, run, attempt, c)) is not None]
        changed = False
        for t in touched:
            for found in self._judge(run, t):
                changed = True
                run.keep(self._as_told(found))
            if t.queue and t.series.wanted is None:
                t.series.wanted = t.queue[0].start
                run.queued.append((attempt, t))
        return changed

    def _name_roles(self, src: Source, chunks: list[Chunk]) -> None:
        """Give roles to tags seen for the first time, from the keys up to the record where each appears."""
        fresh = sorted((int(c.row[0]), c.tag) for c in chunks if c.tag not in src.keys)
        for _, same in itertools.groupby(fresh, key=lambda new: new[0]):
            tags = [tag for _, tag in same]
            src.keys.update(dict.fromkeys(tags))
            for tag in tags:
                src.roles[tag] = self.settings.roles.assign(tag, src.keys, src.prefix, src.facts)

    def _tick(self, src: Source, attempt: Attempt, chunks: Sequence[Chunk]) -> None:
        """Note how far the source has come, record by record where other sources look at it."""
        if src.attempt != attempt.number:
            src.attempt, src.reached_step = attempt.number, -math.inf
        if src.timed is None:
            row = min(int(c.row[0]) for c in chunks)
            src.timed = any(math.isfinite(c.time[0]) for c in chunks if int(c.row[0]) == row)
        if len(self.sources) > 1:
            clock = attempt.clocks.setdefault(src.name, Clock(src.timed))
            clock.extend(chunks, src.reached_time)
        src.reached_step = max(src.reached_step, *(int(c.step.max()) for c in chunks))
        times = np.concatenate([c.time for c in chunks])
        src.reached_time = max(src.reached_time, float(times.max(initial=-np.inf, where=np.isfinite(times))))

    def _extend(self, src: Source, run: Run, attempt: Attempt, c: Chunk) -> Tracked | None:
        run.points += len(c)
        src.points += len(c)
        first, last = int(c.step.min()), int(c.step.max())
        run.first_step = first if run.first_step is None else min(run.first_step, first)
        run.last_step = last if run.last_step is None else max(run.last_step, last)
        attempt.first_step = first if attempt.first_step is None else min(attempt.first_step, first)
        key = (src.name, c.tag)
        t = attempt.tracked.get(key)
        if t is None:
            if attempt.tags[src.name] >= MAX_TAGS or src.series >= MAX_SERIES:
                run.dropped_points += len(c)
                return None
            attempt.tags[src.name] += 1
            src.series += 1
            t = attempt.tracked[key] = self._track(src, run, attempt, c)
        t.series.extend(c)
        return t

    def _track(self, src: Source, run: Run, attempt: Attempt, c: Chunk) -> Tracked:
        role = src.roles[c.tag]
        tag = src.prefix + c.tag
        meaning = self.settings.roles.roles.get(role)
        series = Series(
            tag,
            role,
            src.name,
            attempt.number,
            meaning.direction if meaning else 0,
            bool(meaning and meaning.log),
        )
        if len(self.sources) > 1 and any(
            role in r.companions and DETECTORS[r.detector].across for r in self.settings.rules
        ):
            series.retain = ACROSS_RING
        if attempt.number > 0:
            older = run.attempts[attempt.number - 1].tracked.get((src.name, c.tag))
            if older is not None:
                series.inherit(older.series, int(c.step[0]))
        solo: list[Detector] = []
        waiting: list[Detector] = []
        for rule in self.settings.rules:
            if role and role in rule.roles:
                cls = DETECTORS[rule.detector]
                names = tuple(self.sources) if cls.across else (src.name,)
                peer = _Peer(attempt, names)
                detector: Detector = cls(rule, series, peer, run.said.setdefault(src.name, {}))
                if rule.hold:
                    detector = Held(detector)
                (waiting if cls.across else solo).append(detector)
        return Tracked(series, solo, waiting)

    # ------------------------------------------------------------------ judging
    def _judge(self, run: Run, t: Tracked) -> Iterable[Finding]:
        for block in t.series.blocks():
            for d in t.detectors:
                yield from d.update(block)
            if t.waiting:
                t.queue.append(block)

    def _drain(self, number: int, run: Run) -> bool:
        """Show queued blocks to the detectors that had to wait for other sources."""
        changed = False
        for attempt, t in run.queued:
            for head in self._ready_blocks((number, attempt.number), t):
                for d in t.waiting:
                    for found in d.update(head):
                        changed = True
                        run.keep(self._as_told(found))
            t.series.wanted = t.queue[0].start if t.queue else None
        run.queued = [(attempt, t) for attempt, t in run.queued if t.queue]
        return changed

    def _ready_blocks(self, at: tuple[int, int], t: Tracked) -> Iterable[Block]:
        """Take from a series' queue, in this run and attempt, what every other open source has reached."""
        others = [s for s in self.sources.values() if s.name != t.series.source and not s.closed]
        taken = 0
        for block in t.queue:
            ready = min((_ready(block, s, at) for s in others), default=len(block))
            if ready < len(block):
                if ready:
                    yield block.cut(0, ready)
                    t.queue[taken] = block.cut(ready, len(block))
                break
            taken += 1
            yield block
        del t.queue[:taken]


def _ready(block: Block, other: Source, at: tuple[int, int]) -> int:
    """Return the number of leading points of a block that another source has passed; `at` is their run and attempt."""
    there = (other.run, other.attempt)
    if there > at:
        return len(block)
    if other.timed is None or other.run < at[0]:
        return 0
    step = other.reached_step if there == at else -math.inf
    passed = block.step < step
    if other.timed:
        passed = np.where(np.isfinite(block.time), block.time < other.reached_time, passed)
    return len(block) if passed.all() else int(passed.argmin())


@dataclass(slots=True)
class _Peer:
    """Finds a detector's companions in its attempt (a class, so that a session can be pickled).

    Series come in the order of their first record, sources in the order in which they were opened; which of
    them exist yet never matters, because a view holds only what was logged by the moment asked for.
    """

    attempt: Attempt
    sources: tuple[str, ...]

    def __call__(self, role: str, block: Block, at: int, n: int) -> View:
        for source in self.sources:
            for series in self.attempt.of_role(role, source):
                row = int(block.row[at])
                if source != block.series.source:
                    clock = self.attempt.clocks.get(source)  # none before the session had a second source
                    row = clock.row_at(int(block.step[at]), float(block.time[at])) if clock else -1
                view = series.asof_row(row, n)
                if len(view):
                    return view
        return EMPTY
