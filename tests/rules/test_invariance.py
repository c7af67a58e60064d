"""Contract 2: a run's incidents are a function of its points alone.

Logs with faults in them are cut at random bytes, their sources interleaved at random, reader and engine pickled in
between: the incidents must end the same to the last digit that is promised.
"""

import itertools
import json
import pickle
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon.readers.jsonl import JsonlReader
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session
from trainmon_rules.points import Batch, Params, chunk
from trainmon_rules.postmortem import report_runs
from trainmon_rules.report import run_dict
from trainmon_rules.state import Settings

SETTINGS = Settings.default()
KNOWLEDGE = Knowledge.load()


def story(session):
    """Everything that must not depend on how the points came."""
    return [run_dict(r) for r in report_runs(session, KNOWLEDGE)]


def faulty_log(seed: int) -> bytes:
    """A log with a random choice of faults: spikes, NaN, a rise, a collapsing scale, a resume, a second run."""
    rng = random.Random(seed)
    rows, level = [], rng.uniform(2, 10)
    n, every = rng.choice([30, 90, 300, 700]), rng.choice([1, 1, 10])
    faults = {k: rng.randrange(n) for k in rng.sample(["spike", "nan", "rise", "scale", "grad", "resume", "again"], 4)}
    step, scale = 0, 65536.0
    for i in range(n):
        level = 0.5 + (level - 0.5) * 0.99
        loss, grad = level + rng.gauss(0, 0.03), 0.5 * 2.718 ** rng.gauss(0, 0.2)
        since = {k: i - at for k, at in faults.items()}
        if 0 <= since.get("spike", -1) < 4:
            loss += 3 + rng.random()
        if 0 <= since.get("nan", -1) < rng.choice([1, 3, 9]):
            loss = float("nan")
        if since.get("rise", -1) >= 0:
            loss += 0.1 * since["rise"]
        if 0 <= since.get("scale", -1) < 12:
            scale /= 2
        if 0 <= since.get("grad", -1) < 5:
            grad *= 1000
        if since.get("resume") == 0:
            step = max(1, step - 7 * every)
        if since.get("again") == 0:
            step = 0
        row = {"step": step, "loss": loss, "grad_norm": grad, "lr": 1e-3, "loss_scale": scale}
        if i % 7 == 3:
            row = {"step": step, "eval_loss": loss + 0.1}
        if i == n // 2:
            rows.append({"args": {"max_grad_norm": 1.0}})
        rows.append(row)
        step += every
    return "".join(json.dumps(r) + "\n" for r in rows).encode()


def read(data: bytes, cuts: list[int], pickled: bool = False) -> Session:
    session, reader = Session("run", SETTINGS), JsonlReader()
    edges = [0, *sorted(c % (len(data) + 1) for c in cuts), len(data)]
    for a, b in itertools.pairwise(edges):
        session.feed("log", reader.feed(data[a:b]))
        if pickled:
            session, reader = pickle.loads(pickle.dumps((session, reader)))
    session.feed("log", reader.finish())
    session.end()
    return session


@given(st.integers(0, 10_000), st.lists(st.integers(0, 1_000_000), max_size=40))
@settings(max_examples=60)
def test_cuts_at_random_bytes_change_nothing(seed, cuts):
    data = faulty_log(seed)
    assert story(read(data, cuts)) == story(read(data, []))


@given(st.integers(0, 10_000), st.lists(st.integers(0, 1_000_000), max_size=6))
@settings(max_examples=25)
def test_a_restart_from_a_snapshot_changes_nothing(seed, cuts):
    data = faulty_log(seed)
    assert story(read(data, cuts, pickled=True)) == story(read(data, []))


def test_byte_by_byte_is_the_same_as_at_once():
    data = faulty_log(3)
    assert story(read(data, list(range(len(data))))) == story(read(data, []))


def test_the_logs_above_do_hold_faults():
    symptoms = {i["symptom"] for s in range(40) for r in story(read(faulty_log(s), [])) for i in r["incidents"]}
    assert {"nonfinite", "loss-spike", "divergence", "loss-scale-collapse"} <= symptoms


def two_sources(seed: int) -> dict[str, list[Batch]]:
    """A training and a validation source of one run that overfits, as single-row batches."""
    rng = np.random.default_rng(seed)
    n, every = 400, int(rng.choice([10, 25, 40]))
    train = 2.5 * np.exp(-np.arange(n) / 80) + rng.normal(0, 0.02, n) + 0.05
    if seed % 3 == 0:
        train[200:204] += 3
    evals = np.arange(every - 1, n, every)
    val = train[evals] + 0.2 + np.maximum(0, evals - 150) / 200
    time = 1.7e9 + np.arange(n) * 2.0
    a = [Batch([chunk("loss", [i], [train[i]], [time[i]], [i])]) for i in range(n)]
    b = [Batch([chunk("loss", [s], [val[k]], [time[s] + 0.5], [k])]) for k, s in enumerate(evals)]
    return {"train": a, "validation": b}


def interleave(sources, order) -> Session:
    session = Session("run", SETTINGS)
    session.open("train", "train/")
    session.open("validation", "validation/")
    left = {k: list(v) for k, v in sources.items()}
    names = list(left)
    for pick in order:
        name = names[pick % 2]
        for _ in range(pick // 2 + 1):
            if left[name]:
                session.feed(name, left[name].pop(0))
    for name in names:
        for batch in left[name]:
            session.feed(name, batch)
        session.close(name)
    session.end()
    return session


@given(st.integers(0, 8), st.lists(st.integers(0, 60), max_size=80))
@settings(max_examples=30)
def test_sources_interleaved_at_random_change_nothing(seed, order):
    sources = two_sources(seed)
    first = story(interleave(sources, []))
    assert story(interleave(sources, order)) == first


@pytest.mark.parametrize("start", [0, 1])
def test_reading_either_source_first_changes_nothing(start):
    sources = two_sources(5)
    assert story(interleave(sources, [start + 2 * 500])) == story(interleave(sources, []))


def test_settings_in_the_middle_of_a_batch_do_not_take_the_companion_away():
    """Settings cut a batch in segments; an evaluation in the first is judged beside the training loss of then."""
    n = 3000
    loss = [1.0 / (1 + i / 100) for i in range(n)]
    evals = list(range(9, n, 10))
    val = [loss[i] + 0.2 + max(0, i - 300) / 1000 for i in evals]
    batch = Batch(
        [chunk("loss", range(n), loss, row=range(n)), chunk("val_loss", evals, val, row=evals)],
        [Params(row, {"max_grad_norm": 1.0}) for row in (900, 1800, 2900)],
    )

    def story_of(batches):
        session = Session("run", SETTINGS)
        for b in batches:
            session.feed("log", b)
        session.end()
        return story(session)

    pieces = [
        Batch(
            [c.cut(*np.searchsorted(c.row, [a, a + 100])) for c in batch.chunks],
            [e for e in batch.events if a <= e.row < a + 100],
        )
        for a in range(0, n, 100)
    ]
    assert story_of([batch]) == story_of(pieces)
    assert "overfit" in str(story_of([batch]))
