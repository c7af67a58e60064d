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
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from trainmon_rules import guarded
from trainmon_rules.attempts import Segment
from trainmon_rules.clock import Clock
from trainmon_rules.detectors import DETECTORS, Detector
from trainmon_rules.detectors.hold import Held
from trainmon_rules.findings import Finding, State
from trainmon_rules.points import Batch, Chunk, Finish, Params, Problem
from trainmon_rules.series import Block, Series
from trainmon_rules.state import (
    ACROSS_RING,
    MAX_ATTEMPTS,
    MAX_PROBLEMS,
    MAX_RUNS,
    MAX_SERIES,
    MAX_TAGS,
    MAX_WHOLE,
    Attempt,
    Peers,
    Run,
    Settings,
    Source,
    Tracked,
)


class Session:
    """Feeds points of one story through roles, series, detectors and incidents.

    Parameters
    ----------
    name : str
        The run's name; further runs in the same sources are called `name#2`, `name#3`, ….
    settings : Settings
        Rules, roles and answers.
    whole : collection of str
        Roles whose series keep all their points (of the first `MAX_WHOLE` series, a million each), for a comparison.
    """

    def __init__(self, name: str, settings: Settings, whole: Collection[str] = ()) -> None:
        self.name = name
        self.settings = settings
        self.whole = whole
        self.kept_whole = 0
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
        for run in self.runs:
            run.standing.clear()
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
        for run in self.runs:
            self._refresh(run)
            run.end(self.sources)
        return self.runs

    def refresh(self) -> None:
        """Bring the findings that go on up to their latest numbers; nothing is decided, no event is due."""
        for run in self.runs:
            self._refresh(run)

    def _refresh(self, run: Run) -> None:
        run.standing.clear()
        for attempt in run.attempts:
            for t in attempt.tracked.values():
                for d in (*t.detectors, *t.waiting):
                    found = guarded.standing(run.failures, t, d)
                    if found is not None and (said := run.findings.get(found.key)) and said.state is State.FIRING:
                        run.standing[found.key] = self._as_told(found)

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
        """The source has begun another run: what is firing in the old one ends with it, once all of it was judged."""
        run = self.runs[src.run]
        run.ending.add(src.name)
        self._end_left(run)

    def _end_left(self, run: Run) -> None:
        """End what sources have left, as far as none of their points wait for another source."""
        over = run.ending - {t.series.source for _, t in run.queued if t.queue}
        if over:
            self._refresh(run)
            run.end(over)
            run.standing.clear()
            run.ending -= over

    def _take(self, src: Source, run: Run, segment: Segment) -> bool:
        for event in segment.events:
            if isinstance(event, Params):
                src.facts.update(dict.fromkeys(event.values))
                run.settings_of(src.name).update(event.values)
            elif isinstance(event, Finish):
                run.finishes[src.name] = event.why
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
        first, last = int(c.step.min()), int(c.step.max())
        if src.roles.get(c.tag) != "twin":  # it may live on another axis: samples beside iterations
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
        if role in self.whole and self.kept_whole < MAX_WHOLE:
            self.kept_whole += 1
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
                peer = Peers(attempt, names)
                detector: Detector = cls(rule, series, peer, run.settings_of(src.name))
                if rule.hold:
                    detector = Held(detector)
                (waiting if cls.across else solo).append(detector)
        return Tracked(series, solo, waiting)

    # ------------------------------------------------------------------ judging
    def _judge(self, run: Run, t: Tracked) -> Iterable[Finding]:
        for block in t.series.blocks():
            for d in tuple(t.detectors):
                yield from guarded.update(run.failures, t, d, block)
            if t.waiting:
                t.queue.append(block)
        if t.queue and t.series.count - t.queue[0].start > ACROSS_RING:  # another source is silent: wait no longer
            run.given_up.update(d.rule.name for d in t.waiting)
            t.queue, t.waiting = [], []

    def _drain(self, number: int, run: Run) -> bool:
        """Show queued blocks to the detectors that had to wait for other sources."""
        changed = False
        for attempt, t in run.queued:
            for head in self._ready_blocks((number, attempt.number), t):
                for d in tuple(t.waiting):
                    for found in guarded.update(run.failures, t, d, head):
                        changed = True
                        run.keep(self._as_told(found))
            t.series.wanted = t.queue[0].start if t.queue else None
        run.queued = [(attempt, t) for attempt, t in run.queued if t.queue]
        self._end_left(run)
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
