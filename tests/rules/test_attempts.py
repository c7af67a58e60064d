"""Runs and attempts: where a source starts over."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmon_rules.attempts import Splitter
from trainmon_rules.points import Batch, Boundary, Params, chunk


def split(steps_by_tag, events=(), sizes=()):
    """Return {(run, attempt): {tag: steps}} for tags logged in the same rows."""
    n = len(next(iter(steps_by_tag.values())))
    splitter, out, at = Splitter(), {}, 0
    for size in [*sizes, n]:
        stop = min(n, at + size)
        rows = np.arange(at, stop)
        batch = Batch(
            [
                chunk(t, [s[r] for r in rows if s[r] is not None], [0.0] * sum(s[r] is not None for r in rows),
                      row=[r for r in rows if s[r] is not None])
                for t, s in steps_by_tag.items()
                if any(s[r] is not None for r in rows)
            ],
            [e for e in events if at <= e.row < stop],
        )  # fmt: skip
        at = stop
        for segment in splitter.split(batch):
            home = out.setdefault((segment.run, segment.attempt), {})
            for c in segment.chunks:
                home.setdefault(c.tag, []).extend(c.step.tolist())
    return out


def test_a_run_that_goes_on_is_one_attempt():
    assert split({"loss": [0, 10, 20, 30]}) == {(0, 0): {"loss": [0, 10, 20, 30]}}


def test_going_back_is_a_resume_and_near_zero_another_run():
    steps = [10, 20, 30, 40, 50, 30, 40, 50, 60, 10, 20]
    assert split({"loss": steps}) == {
        (0, 0): {"loss": [10, 20, 30, 40, 50]},
        (0, 1): {"loss": [30, 40, 50, 60]},
        (1, 0): {"loss": [10, 20]},
    }


def test_repeated_steps_are_no_restart():
    assert list(split({"loss": [1, 1, 2, 2, 3]})) == [(0, 0)]


def test_tags_on_different_axes_are_compared_with_themselves_only():
    assert list(split({"loss": [1, 2, 3], "loss vs samples": [256, 512, 768]})) == [(0, 0)]


def test_a_validation_step_ahead_of_the_training_steps_is_one_resume_not_two():
    train = [1, 2, 3, 4, None, 3, 4, 5, None]
    val = [None, None, None, None, 4, None, None, None, 3]
    assert list(split({"loss": train, "val": val})) == [(0, 0), (0, 1)]


def test_a_boundary_of_the_source_itself_starts_a_run():
    got = split({"loss": [0, 1, 2, 0, 1, 2]}, [Boundary(3, "run", "conflict marker")])
    assert got == {(0, 0): {"loss": [0, 1, 2]}, (1, 0): {"loss": [0, 1, 2]}}


def test_a_boundary_before_anything_was_logged_is_the_beginning():
    assert list(split({"loss": [0, 1]}, [Boundary(0, "run", "first marker")])) == [(0, 0)]


def test_settings_in_the_middle_split_the_batch_but_not_the_attempt():
    splitter = Splitter()
    segments = splitter.split(Batch([chunk("loss", [0, 1, 2], [1, 1, 1])], [Params(2, {"lr": 1})]))
    assert [(s.run, s.attempt, sum(map(len, s.chunks)), len(s.events)) for s in segments] == [
        (0, 0, 2, 0),
        (0, 0, 1, 1),
    ]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=60), st.lists(st.integers(1, 9), max_size=20))
def test_any_cut_gives_the_same_attempts(steps, sizes):
    assert split({"loss": steps}, sizes=sizes) == split({"loss": steps})


@pytest.mark.parametrize("runs", [2, 20])
def test_many_runs_appended_to_one_file(runs):
    got = split({"val_loss": list(range(0, 3375, 125)) * runs})
    assert sorted(got) == [(k, 0) for k in range(runs)]


HEADER = Params(5, {"lr": 1.0})


@pytest.mark.parametrize("sizes", [[], [5], [1] * 9])
def test_settings_printed_above_a_second_run_belong_to_it(sizes):
    """The line of settings is read before the first record of its run, which alone tells that a run begins."""
    splitter, steps, at, found = Splitter(), [0, 1, 2, 3, 4, 0, 1, 2, 3], 0, []
    for size in [*sizes, len(steps)]:
        rows = list(range(at, min(len(steps), at + size)))
        if rows:
            events = [HEADER] if at < HEADER.row <= rows[-1] + 1 else []
            found += splitter.split(Batch([chunk("loss", [steps[r] for r in rows], rows, row=rows)], events))
        at += size
    assert [(s.run, s.attempt) for s in [*found, *splitter.rest()] if s.events] == [(1, 0)]


def test_settings_at_the_end_of_a_source_belong_to_its_last_run():
    splitter = Splitter()
    splitter.split(Batch([chunk("loss", [1, 2], [1.0, 1.0])], [Boundary(2, "run", "marker"), Params(2, {"lr": 1.0})]))
    [segment] = splitter.rest()
    assert (segment.run, segment.events) == (0, [Params(2, {"lr": 1.0})])


@pytest.mark.parametrize("sizes", [[], [3], [1] * 6])
def test_a_boundary_is_judged_by_the_first_record_behind_it(sizes):
    boundary = Boundary(3, "attempt", "restarted")
    steps = {"loss": [1, 2, 3, 1, 2, 3]}
    assert list(split(steps, [boundary], sizes)) == [(0, 0), (1, 0)]
    late = {"loss": [1, 2, 3, None, 1, 2], "new": [None, None, None, 7, 8, 9]}
    assert list(split(late, [boundary], sizes)) == [(0, 0), (0, 1)]


@pytest.mark.parametrize("tags", ["ab", "ba"])
def test_of_tags_that_go_back_in_one_record_the_most_cautious_decides(tags):
    frequent, rare = [10, 20, 30, 40, 20], [None, 25, None, None, 20]
    steps = {tag: frequent if tag == "a" else rare for tag in tags}
    assert list(split(steps)) == [(0, 0), (0, 1)]
