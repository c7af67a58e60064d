"""Contract 2 with several sources: whatever order they are read in, a run ends the same.

The logs here are as unruly as real ones: sources with and without wall times, clocks that are set back, records
without a time, tags that appear late, resumes and second runs in some of the sources, settings in the middle,
sources that end early or are empty.
"""

import pickle
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon_rules.clock import Clock
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session
from trainmon_rules.points import Batch, Boundary, Chunk, Finish, Params, chunk
from trainmon_rules.postmortem import report_runs
from trainmon_rules.report import run_dict
from trainmon_rules.state import Settings

SETTINGS = Settings.default()
KNOWLEDGE = Knowledge.load()
NAN = float("nan")


def unruly_sources(seed: int) -> dict[str, list[Batch]]:
    """Two or three sources of one run, as batches of one record each."""
    rng = random.Random(seed)
    n, every = rng.choice([60, 200, 700]), rng.choice([1, 5])
    odd = rng.random() < 0.5
    resume = rng.randrange(20, n) if rng.random() < 0.5 else -1
    again = rng.randrange(20, n) if rng.random() < 0.3 else -1
    names = ["train", *rng.choice([["val"], ["aux"], ["val", "aux"]])]
    return {name: records(name, random.Random(f"{seed}/{name}"), n, every, resume, again, odd) for name in names}


def records(name, rng, n, every, resume, again, odd) -> list[Batch]:
    timed, offset = rng.random() < 0.6, rng.choice([0, 0.5, -0.5, 1000])
    back = rng.randrange(n) if odd and rng.random() < 0.3 else n
    no_time = 0.2 if odd and rng.random() < 0.3 else 0
    spike, bad = rng.randrange(n), rng.randrange(n) if rng.random() < 0.4 else -9
    gap, noise = 1 if name == "train" else rng.choice([5, 10, 25]), rng.uniform(0.005, 0.1)
    out: list[Batch] = []
    step = 0
    for i in range(n):
        step = 0 if i == again else max(1, step - 7 * every) if i == resume else step
        time = NAN if not timed or rng.random() < no_time else 1.7e9 + 2 * i + offset - (300 if i > back else 0)
        base, row = 0.3 + 2.5 * np.exp(-5 * i / n), len(out)
        values: dict[str, float] = {}
        if name == "train":
            loss = NAN if 0 <= i - bad < 3 else base + rng.gauss(0, noise) + (3 if 0 <= i - spike < 4 else 0)
            values = {"loss": loss, "lr": 1e-3}
            if i > n // 3:
                values["grad_norm"] = 0.5 * np.exp(rng.gauss(0, 0.2)) * (1000 if 0 <= i - spike < 4 else 1)
            if rng.random() < 0.05:
                values["eval_loss"] = base + 0.1
        elif i % gap == gap - 1:
            worse = max(0, i - spike) / n * 3
            values = {"val_loss": base + 0.2 + worse + rng.gauss(0, noise), "val_acc": 0.5}
            if name == "aux":
                values = {"eval/loss": base + 0.3 + rng.gauss(0, noise), "accuracy": 0.5 + 0.4 * i / n}
        if values:
            events = [
                e
                for e, often in [
                    (Params(row, {rng.choice(["max_grad_norm", "total_steps"]): rng.choice([1.0, 100])}), 0.01),
                    (Boundary(row, "attempt", "restarted"), 0.002 if odd else 0),
                    (Finish(row, f"step {step}"), 0.002 if odd else 0),
                ]
                if rng.random() < often
            ]
            out.append(Batch([chunk(tag, [step], [v], [time], [row]) for tag, v in values.items()], events))
        step += every
    return out[: rng.randrange(len(out) + 1)] if rng.random() < 0.15 else out


def joined(batches: list[Batch]) -> Batch:
    columns: dict[str, list[Chunk]] = {}
    for b in batches:
        for c in b.chunks:
            columns.setdefault(c.tag, []).append(c)
    fields = ("step", "time", "value", "row")
    chunks = [Chunk(tag, *(np.concatenate([getattr(c, f) for c in cs]) for f in fields)) for tag, cs in columns.items()]
    return Batch(chunks, [e for b in batches for e in b.events])


def told(sources: dict[str, list[Batch]], turns: list[tuple[int, int]], pickled: bool = False, close: bool = True):
    """Read `n` records of a source at each turn, then what is left, source after source; return the reports."""
    session = Session("run", SETTINGS)
    for name in sources:
        session.open(name, "val/" if name == "val" else "")
    left = {name: list(batches) for name, batches in sources.items()}
    names = list(left)
    for turn, (pick, n) in enumerate(turns):
        name = names[pick % len(names)]
        part, left[name] = left[name][:n], left[name][n:]
        session.feed(name, joined(part))
        if pickled and turn % 8 == 0:
            session = pickle.loads(pickle.dumps(session))
    for name in names:
        session.feed(name, joined(left[name]))
        if close:
            session.close(name)
    session.end()
    return [run_dict(r) for r in report_runs(session, KNOWLEDGE)]


TURNS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1, 2, 3, 30, 600])), max_size=120)


@given(st.integers(0, 1_000_000), TURNS, st.booleans(), st.booleans())
@settings(max_examples=40)
def test_any_interleaving_of_unruly_sources_ends_the_same(seed, turns, pickled, close):
    sources = unruly_sources(seed)
    assert told(sources, turns, pickled, close) == told(sources, [])


@pytest.mark.parametrize("seed", [5, 12, 17, 21, 30, 43])
def test_the_source_that_is_read_first_does_not_speak_first(seed):
    """Settings, the series that a diagnosis looks at, and the reason of the end go by the order of opening."""
    sources = unruly_sources(seed)
    last_first = [(i, 10_000) for i in reversed(range(len(sources)))]
    assert told(sources, last_first) == told(sources, [])


def test_settings_of_two_sources_do_not_depend_on_who_is_read_last():
    def session(order):
        s = Session("run", SETTINGS)
        s.open("a")
        s.open("b")
        for name in order:
            s.feed(name, Batch([chunk("loss", [1], [2.0])], [Params(0, {"max_grad_norm": ord(name)})]))
            s.feed(name, Batch([chunk("loss", [2], [2.0], row=[1])], [Finish(1, name)]))
        s.end()
        return s.runs[0]

    for order in ("ab", "ba"):
        assert session(order).facts["max_grad_norm"] == ord("a")
        assert session(order).finish == "a"


def test_a_block_that_waits_keeps_the_points_before_it():
    """Evaluations that wait for 3,000 records of the other source are still judged beside what was before them."""
    session = Session("run", SETTINGS)
    session.open("train")
    session.open("val")
    for at in range(0, 3000, 100):
        session.feed("val", Batch([chunk("val_loss", range(at, at + 100), [1.0] * 100, row=range(at, at + 100))]))
    [t] = session.runs[0].attempts[0].tracked.values()
    assert t.queue[0].start == 0
    assert len(t.series.before(600, 512)) == 512
    session.feed("train", Batch([chunk("loss", range(3000), [1.0] * 3000)]))
    session.close("train")
    assert t.queue == []
    session.feed("val", Batch([chunk("val_loss", [3000], [1.0], row=[3000])]))
    assert len(t.series.before(600, 512)) == 0


def test_a_clock_never_goes_back_and_answers_by_time_where_there_is_one():
    clock = Clock(True)
    clock.extend([chunk("loss", [10, 20, 30], [1.0] * 3, [100.0, NAN, 90.0], [0, 1, 2])], -np.inf)
    clock.extend([chunk("loss", [25], [1.0], [120.0], [3])], 100.0)
    assert [clock.row_at(0, t) for t in (99.0, 100.0, 119.0, 120.0)] == [-1, 2, 2, 3]
    assert [clock.row_at(s, NAN) for s in (9, 10, 29, 30)] == [-1, 0, 1, 3]


def test_a_source_that_stays_silent_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr("trainmon_rules.engine.ACROSS_RING", 500)
    session = Session("run", SETTINGS)
    session.open("train")
    session.open("val")
    session.feed("train", Batch([chunk("loss", [0], [1.0])]))
    for i in range(700):
        session.feed("val", Batch([chunk("val_loss", [10 + i], [1.0], row=[i])]))
    [run] = report_runs(session, KNOWLEDGE)
    assert [b.needs for b in run.blind if b.rule == "overfit"] == ["another source of the run stayed too far behind"]
    assert session.runs[0].attempts[0].tracked["val", "val_loss"].queue == []
