"""Where two runs part: at the exact step where there is no noise, never between two seeds of one healthy run."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import streams
from tests.healthy import WHOLE
from trainmon_rules.comparison import COMPARED, Subject, compare
from trainmon_rules.comparison.parting import Course, broken_from, paired, parted_from, same_until
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session
from trainmon_rules.points import Batch, Params, chunk
from trainmon_rules.postmortem import report_runs
from trainmon_rules.report import run_dict
from trainmon_rules.state import Settings

SETTINGS = Settings.default()
KNOWLEDGE = Knowledge.load()
N = 700


def read(columns, step=None, params=None, name="run", axis="step", whole=COMPARED, cuts=()):
    """Feed columns (None is "not logged") to the real engine; return its first run and report."""
    session = Session(name, SETTINGS, whole)
    session.open("log")
    if params:
        session.feed("log", Batch(events=[Params(0, params)]))
    edges = [0, *cuts, max(map(len, columns.values()))]
    for a, b in itertools.pairwise(edges):
        chunks = []
        for tag, values in columns.items():
            rows = np.array([i for i in range(a, min(b, len(values))) if values[i] is not None], np.int64)
            if len(rows):
                at = rows if step is None else np.asarray(step, np.int64)[rows]
                chunks.append(chunk(tag, at, [values[i] for i in rows], None, rows))
        session.feed("log", Batch(chunks))
    session.end()
    return session.runs[0], report_runs(session, KNOWLEDGE, axis)[0]


def held(here, there):
    """Return the comparison of two runs given as columns, or as (columns, how they are read)."""
    sides = [side if isinstance(side, tuple) else (side, {}) for side in (here, there)]
    names = ("here", "there")
    one, other = (Subject.of(*read(c, name=n, **how)) for (c, how), n in zip(sides, names, strict=True))
    return compare(one, other, SETTINGS.roles, "the only run there")


def logged(columns):
    """Columns of `tests.healthy` without its clock, absent where they hold NaN."""
    return {k: [None if math.isnan(x) else x for x in v.tolist()] for k, v in columns.items() if k != "time"}


def series(comparison, tag):
    [found] = [s for s in comparison.series if s.series == tag]
    return found


def run(seed, at=None):
    """A healthy run; from row `at` on its rate is doubled, and the loss drifts away for it."""
    columns = streams.base(N, seed)
    columns["lr"] = [1e-3 * (1 - i / 1000) for i in range(N)]
    for i in range(N if at is None else at, N):
        columns["lr"][i] *= 2
        columns["loss"][i] += 0.003 * (i - at)
        if columns["eval_loss"][i] is not None:
            columns["eval_loss"][i] += 0.003 * (i - at)
    return columns


# ---------------------------------------------------------------------- together
@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("n", [300, 1500])
def test_two_seeds_of_a_healthy_run_do_not_part(name, n):
    for seed in range(3):
        found = held(logged(WHOLE[name](n, seed)), logged(WHOLE[name](n, seed + 50)))
        assert (found.parted_step, found.parted_series) == (None, None)
        assert len(found.series) > 2
        assert {s.outcome for s in found.series} <= {"together", "same", "unknown"}


def test_a_run_is_the_same_as_itself():
    found = held(run(0), run(0))
    assert {(s.outcome, s.same_until) for s in found.series} == {("same", 699)}
    assert found.only_here == found.only_there == ()


@pytest.mark.parametrize("seed", range(5))
def test_a_spike_that_recovers_and_a_stretch_that_is_over_are_no_parting(seed):
    spike, stretch = run(seed), run(seed)
    for i in range(300, 304):
        spike["loss"][i] += 3000
    for i in range(300, 400):
        stretch["loss"][i] += 0.5
    for ailing in (spike, stretch):
        found = series(held(ailing, run(seed + 50)), "loss")
        assert (found.outcome, found.parted_step) == ("together", None)


def test_a_lasting_difference_too_small_to_matter_is_none():
    one, other = run(0), run(1)
    one["loss"] = [x * 1.004 for x in one["loss"]]
    assert series(held(one, other), "loss").outcome == "together"


# ---------------------------------------------------------------------- parted
@pytest.mark.parametrize("seed", range(5))
def test_a_doubled_rate_parts_at_its_very_step_and_the_loss_after_it(seed):
    found = held(run(seed, 300), run(seed + 50))
    lr, loss = series(found, "lr"), series(found, "loss")
    assert (lr.outcome, lr.same_until, lr.parted_step, lr.better) == ("parted", 299, 300, None)
    assert lr.level == pytest.approx(2 * lr.against_level)
    assert 300 <= loss.parted_step <= 345
    assert (loss.better, loss.same_until) == ("against", None)
    assert series(found, "eval_loss").parted_step >= 300
    assert series(found, "grad_norm").outcome == "together"
    assert (found.parted_step, found.parted_series) == (300, "lr")


def test_of_one_seed_the_last_common_number_is_told_too():
    loss = series(held(run(0, 300), run(0)), "loss")
    assert loss.same_until == 300  # the drift begins with nothing at 300
    assert 301 <= loss.parted_step <= 345
    assert loss.summary.startswith(f"the same to step 300, parts at step {loss.parted_step}: ")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [0.1, 0.5])
def test_a_step_of_the_level_is_found_where_it_is(seed, size):
    one = run(seed)
    one["loss"] = [x + size * (i >= 300) for i, x in enumerate(one["loss"])]
    assert series(held(one, run(seed + 50)), "loss").parted_step == pytest.approx(300, abs=2)


def test_the_better_one_is_told_by_the_direction_of_its_role():
    rng = np.random.default_rng(0)
    level = {"reward": 1.0, "eval_accuracy": 0.7, "throughput": 100.0, "step_time": 0.5, "grad_norm": 1.0}
    one = {tag: (1.3 * v + rng.normal(0, 0.01, 200)).tolist() for tag, v in level.items()}
    other = {tag: (v + rng.normal(0, 0.01, 200)).tolist() for tag, v in level.items()}
    found = held(one, other)
    assert {s.series: s.better for s in found.series} == {
        "reward": "run", "eval_accuracy": "run", "throughput": "run", "step_time": "against", "grad_norm": None,
    }  # fmt: skip
    assert {s.parted_step for s in found.series} == {0}
    assert series(found, "throughput").summary.endswith("(30 % higher), better")


def test_a_loss_that_is_nan_from_a_step_on_parts_there():
    one = run(0)
    one["loss"][400:] = [math.nan] * 300
    found = series(held(one, run(1)), "loss")
    assert (found.outcome, found.parted_step) == ("parted", 400)
    assert found.summary.startswith("parts at step 400: NaN against 0.")


def test_a_level_of_a_broken_series_is_not_called_better():
    one, other = run(0), run(1)
    one["loss"][400:] = [math.nan] * 30 + [0.0] * 270
    found = series(held(one, other), "loss")
    assert (found.outcome, found.level, found.better) == ("parted", 0.0, None)


def test_a_warm_up_that_differs_is_told_with_its_end():
    one, other = run(0), run(1)
    one["lr"] = [1e-3 * min(1, (i + 1) / 100) for i in range(N)]
    other["lr"] = [1e-3 * min(1, (i + 1) / 50) for i in range(N)]
    found = series(held(one, other), "lr")
    assert (found.parted_step, found.rejoined_step) == (0, 99)
    assert found.summary.startswith("differs from step 0 to 98: ")


def test_a_resumed_run_is_compared_as_it_was_trained_in_the_end():
    loss = run(0)["loss"]
    broken = [*loss[:400], *[9.0] * 100, *loss[350:]]  # rose to 9, went back to step 350
    step = [*range(500), *range(350, N)]
    found = held(({"loss": broken}, {"step": step}), {"loss": loss})
    assert series(found, "loss").outcome == "same"


# ---------------------------------------------------------------------- told honestly
def test_other_grids_are_read_between_their_points():
    one, other = run(0), run(1)
    one["loss"] = [x + 0.5 * (i >= 300) for i, x in enumerate(one["loss"])]
    here = {"loss": one["loss"][5::10]}, {"step": list(range(5, N, 10))}
    there = {"loss": other["loss"][::10]}, {"step": list(range(0, N, 10))}
    found = series(held(here, there), "loss")
    assert found.parted_step == pytest.approx(305, abs=10)
    assert found.points == 69
    quiet = series(held(there, ({"loss": run(2)["loss"][::25]}, {"step": list(range(0, N, 25))})), "loss")
    assert (quiet.outcome, quiet.points) == ("together", 14)
    assert "common steps" in quiet.summary


def test_without_common_steps_or_with_few_nothing_is_claimed():
    loss = run(0)["loss"]
    far = series(held({"loss": loss}, ({"loss": loss}, {"step": list(range(1000, 1000 + N))})), "loss")
    assert (far.outcome, far.points) == ("unknown", 0)
    assert far.summary == "no common steps: 0 to 699 here, 1000 to 1699 there"
    few = series(held({"loss": loss}, {"loss": [9.0] * 5}), "loss")
    assert (few.outcome, few.parted_step, few.summary) == (
        "unknown",
        None,
        "too few common steps with a finite value to say (5)",
    )


def test_axes_that_count_other_things_are_not_compared():
    found = held({"loss": [1.0] * 50}, ({"loss": [2.0] * 50}, {"axis": "train/epoch"}))
    assert found.series == ()
    assert found.notes[0] == "one counts steps, the other epochs: their series have no step in common"


def test_a_series_that_could_not_be_kept_whole_is_not_compared(monkeypatch):
    monkeypatch.setattr("trainmon_rules.engine.MAX_WHOLE", 0)
    long = {"loss": [2.0] * 2000}, {"cuts": [1000]}
    found = series(held(long, long), "loss")
    assert (found.outcome, found.summary) == ("unknown", "too many points to be kept and compared")


def test_series_are_paired_by_tag_else_if_they_are_the_only_two():
    rng = np.random.default_rng(0)
    noise = {tag: rng.normal(2, 0.01, 100).tolist() for tag in ("loss", "eval/bleu", "eval/rouge")}
    found = held(noise, {"train/loss": noise["loss"], "eval/rouge": noise["eval/rouge"]})
    assert {(s.series, s.against_series) for s in found.series} == {
        ("loss", "train/loss"),
        ("eval/rouge", "eval/rouge"),
    }


# ---------------------------------------------------------------------- settings and incidents
def test_settings_that_differ_are_told_in_the_vocabulary_and_places_are_not():
    here = {"lr": 1e-3, "optim": "AdamW", "train/seed": 1, "output_dir": "x", "data": "/here/x", "flash": True, "n": 3}
    there = {"learning_rate": 0.002, "optim": "adamw", "train/seed": 2, "output_dir": "y", "data": "/there/x", "n": 3.0}
    found = held(({"loss": [1.0] * 20}, {"params": here}), ({"loss": [1.0] * 20}, {"params": there}))
    assert [(s.setting, s.value, s.against_value, s.known) for s in found.settings] == [
        ("learning_rate", 0.001, 0.002, True), ("train/seed", 1, 2, False), ("flash", True, None, False),
    ]  # fmt: skip
    silent = held(({"loss": [1.0] * 20}, {"params": here}), {"loss": [1.0] * 20})
    assert (silent.settings, silent.notes) == ((), ("no settings are logged in the other run: they can't be compared",))


def test_incidents_without_a_counterpart_are_told_and_those_that_began_closest_are_counterparts():
    one, other = run(0), run(1)
    for start, columns in ((150, one), (450, one), (460, other)):
        for i in range(start, start + 4):
            columns["loss"][i] += 3
    found = held(one, other)
    assert [(i.symptom, i.severity, i.onset_step) for i in found.only_here] == [("loss-spike", "warning", 150)]
    assert found.only_there == ()


# ---------------------------------------------------------------------- contracts
def test_keeping_series_whole_changes_no_report():
    for name in ("divergence", "overfit", "grad-explosion"):
        columns = streams.AILING[name](0)
        with_all, without = read(columns)[1], read(columns, whole=())[1]
        assert run_dict(with_all) == run_dict(without)


@settings(max_examples=20)
@given(st.lists(st.integers(1, N - 1), max_size=8).map(sorted))
def test_a_comparison_does_not_depend_on_how_points_were_cut(cuts):
    assert held((run(0, 300), {"cuts": cuts}), (run(50), {"cuts": cuts[::2]})) == held(run(0, 300), run(50))


VALUES = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324, math.nan, math.inf]), st.none())
TAGS = st.sampled_from(["loss", "eval_loss", "lr", "grad_norm", "reward", "throughput"])
LOGS = st.dictionaries(TAGS, st.lists(VALUES, min_size=1, max_size=40), min_size=1).filter(
    lambda log: any(v is not None for values in log.values() for v in values)
)


@settings(max_examples=50)
@given(LOGS, LOGS)
def test_whatever_was_logged_the_comparison_is_strict_json(here, there):
    run, report = read(here)
    found = compare(Subject.of(run, report), Subject.of(*read(there)), SETTINGS.roles, "")
    json.dumps(run_dict(replace(report, comparison=found)), allow_nan=False)
    for s in found.series:
        assert s.outcome in ("parted", "together", "same", "unknown")
        assert (s.parted_step is not None) == (s.outcome == "parted")


# ---------------------------------------------------------------------- slow twins
PARTS = st.lists(st.lists(st.tuples(st.integers(0, 30), st.floats(-9, 9)), max_size=20).map(sorted), max_size=4)


def arrays(points):
    return np.array([s for s, _ in points], np.int64), np.array([v for _, v in points], np.float64)


@given(PARTS)
def test_a_course_is_what_the_last_attempt_at_each_step_logged_last(parts):
    slow = {}
    for part in parts:
        if part:
            slow = {s: v for s, v in slow.items() if s < part[0][0]}
            for s, v in part:
                slow[s] = v
    fast = Course.of([arrays(p) for p in parts])
    assert dict(zip(fast.step.tolist(), fast.value.tolist(), strict=True)) == slow
    assert fast.step.tolist() == sorted(slow)


@given(PARTS, PARTS)
def test_pairs_are_the_common_steps_unless_few_are(one, other):
    a, b = (Course.of([arrays(p) for p in parts]) for parts in (one, other))
    left, right = (dict(zip(c.step.tolist(), c.value.tolist(), strict=True)) for c in (a, b))
    common = sorted(set(left) & set(right))
    found = paired(a, b)
    if found.exact:
        assert found.step.tolist() == common
        assert found.one.tolist() == [left[s] for s in common]
        assert found.other.tolist() == [right[s] for s in common]
        same = 0
        while same < len(common) and math.isclose(left[common[same]], right[common[same]], rel_tol=1e-6):
            same += 1
        assert same_until(found) == same
    else:
        inside = [
            s for c in (a, b) for s in c.step.tolist() if max(a.step[0], b.step[0]) <= s <= min(a.step[-1], b.step[-1])
        ]
        assert 2 * len(common) < len(found) <= len(inside)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=12))
def test_what_is_broken_for_good_is_broken_from_its_first_such_pair(finite):
    one, other = (
        ([1.0 if ok else math.nan for ok in side] for side in zip(*finite, strict=True)) if finite else ([], [])
    )
    step = np.arange(len(finite))
    found = broken_from(paired(Course(step, np.array(one)), Course(step, np.array(other))))
    slow = None
    for i in reversed(range(len(finite))):
        if finite[i][0] == finite[i][1] or finite[i] != finite[-1]:
            break
        slow = i
    assert found == slow


@pytest.mark.parametrize("seed", range(10))
def test_a_clear_step_is_where_the_best_fit_of_a_step_is(seed):
    d = np.random.default_rng(seed).normal(0, 1, 400)
    d[200 + seed :] += 4
    squares = [((d[:k] - 0) ** 2).sum() + ((d[k:] - d[k:].mean()) ** 2).sum() for k in range(400)]
    assert parted_from(d, 0.1) == int(np.argmin(squares))
