"""What a hostile or unlucky log costs, and that no number in it can bring a report down."""

import itertools
import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trainmon
from trainmon_exporters import render
from trainmon_exporters.plot_scale import Scale
from trainmon_rules.attempts import WINDOW, Splitter
from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.engine import Session
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.points import Batch, Boundary, Params, chunk
from trainmon_rules.postmortem import report_runs
from trainmon_rules.report import Curve, Report, run_dict
from trainmon_rules.series.history import History
from trainmon_rules.state import MAX_ATTEMPTS, MAX_FINDINGS, MAX_RUNS, MAX_TAGS, Run, Settings
from trainmon_rules.vocabulary import read_settings

SETTINGS = Settings.default()
KNOWLEDGE = Knowledge.load()

EXTREME = [1e308, -1e308, 1.7e308, 5e-324, -5e-324, -0.0, 0.0, 1e300, 1e155, -1e155, 1e-300, 87.3365, 1e16, 2.0**1000]
EXTREME += [float("nan"), float("inf"), float("-inf")]
TAGS = ["loss", "eval_loss", "grad_norm", "lr", "loss_scale", "accuracy", "reward", "skipped_steps", "loss_box"]
ODD = [0, -1, 1e308, 1e-320, 10**30, 10**400, 2.5, float("inf"), float("nan"), "", "fp16", "x" * 1000, None, True]
KEYS = ["max_grad_norm", "total_steps", "warmup_steps", "batch_size", "num_classes", "learning_rate", "precision"]
KEYS += ["dataset_size", "model_size", "gradient_accumulation_steps", "weight_decay", "optimizer"]


def extreme_log(seed: int) -> tuple[list[Batch], dict[str, object]]:
    """Records of ordinary and absurd numbers, steps, times and settings; and answers of the same kind."""
    rng = random.Random(seed)
    n, tags = rng.choice([5, 12, 60, 300]), rng.sample(TAGS, rng.randrange(1, 6))
    steps = rng.choice([range(n), [5] * n, [-(2**63) + i for i in range(n)], [2**63 - n + i for i in range(n)]])
    often = {tag: rng.choice([0.02, 0.3, 1.0]) for tag in tags}
    held = {tag: rng.choice(EXTREME) if rng.random() < 0.3 else None for tag in tags}
    out = []
    for i, step in enumerate(steps):
        values = {
            tag: held[tag]
            if held[tag] is not None and i > n // 2
            else rng.choice(EXTREME)
            if rng.random() < often[tag]
            else 1 + rng.gauss(0, 0.1)
            for tag in tags
        }
        time = rng.choice([1.7e9 + i, -1.0 * i, 1e308, float("nan")])
        events = [Params(i, {rng.choice(KEYS): rng.choice(ODD)})] if rng.random() < 0.02 else []
        out.append(Batch([chunk(tag, [step], [v], [time], [i]) for tag, v in values.items()], events))
    return out, {rng.choice(KEYS): rng.choice(ODD) for _ in range(rng.randrange(3))}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@given(st.integers(0, 1_000_000))
@settings(max_examples=60)
def test_no_number_brings_a_report_down(seed):
    batches, answers = extreme_log(seed)
    session = Session("run", Settings(SETTINGS.rules, SETTINGS.roles, answers))
    for batch in batches:
        session.feed("log", batch)
    session.end()
    report = Report(tuple(report_runs(session, KNOWLEDGE)), ())
    json.loads(render(report, "json"), parse_constant=lambda c: pytest.fail(f"{c} is no JSON"))
    assert render(report, "text")
    assert render(report, "markdown")


@pytest.mark.parametrize("values", [[5e-324, 0.0], [1e308, -1e308], [1.7e308] * 2, [-0.0, 0.0], [1e-300, 1e300]])
def test_every_value_has_a_place_on_the_axis(values):
    scale = Scale.of([Curve("loss", "train_loss", 1, (0, 1), tuple(values), tuple(values), tuple(values), (0, 0))])
    assert all(0 <= scale.place(v) <= 1 for v in [*values, float("nan"), float("inf"), -1e308])


def test_the_history_of_numbers_whose_sum_overflows_stays_finite():
    history = History()
    history.extend(np.arange(700), np.tile([1.7e308, -1.7e308, 1.6e308, 1.7e308], 175))
    assert np.isfinite(history.mean).all()
    assert np.isfinite(history.whole()[2]).all()


def test_settings_of_absurd_size_are_no_settings():
    assert read_settings({"num_classes": 10**400, "lr": "1e300", "max_grad_norm": "1" * 100, "batch_size": 8}) == {
        "batch_size": 8
    }


# ---------------------------------------------------------------------- many of everything
def test_a_log_that_starts_over_without_end_keeps_its_first_runs(tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f'{{"step": {i % 3}, "loss": 2.0}}\n' for i in range(3 * MAX_RUNS + 30)))
    report = trainmon.replay(log)
    assert len(report.runs) == MAX_RUNS
    assert [e.error for e in report.errors] == [f"holds more than {MAX_RUNS:,} runs; the others are left out"]


def test_a_log_that_resumes_without_end_keeps_its_first_attempts(tmp_path):
    steps = itertools.chain(range(0, 1000, 100), *([1000 + i, 1001 + i, 500 + i] for i in range(MAX_ATTEMPTS + 20)))
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f'{{"step": {s}, "loss": 2.0}}\n' for s in steps))
    report = trainmon.replay(log)
    assert [r.attempts for r in report.runs] == [MAX_ATTEMPTS]
    assert "more than 1,000 attempts" in report.errors[0].error


@pytest.mark.parametrize("size", [7, 1000])
def test_points_of_tags_over_the_limit_are_counted_however_they_come(size):
    n = MAX_TAGS + 50
    batch = [chunk(f"t{i:05}", [1, 2], [1.0, 1.0]) for i in range(n)]
    session = Session("run", SETTINGS)
    session.feed("log", Batch([c.cut(0, 1) for c in batch]))
    session.feed("log", Batch([c.cut(1, 2) for c in batch]))
    whole = Session("run", SETTINGS)
    whole.feed("log", Batch(batch))
    for s in (session, whole):
        assert report_runs(s, KNOWLEDGE)[0].skipped == {"points of series over the limit": 100}


def finding(step: int, tag: str = "loss", **changes: object) -> Finding:
    base = Finding(
        "nonfinite",
        "nonfinite",
        "loss",
        Severity.INFO,
        "log",
        tag,
        "train_loss",
        0,
        step,
        step,
        step,
        step,
        step,
        1,
        "",
    )
    return base.changed(**changes)


def test_of_too_many_findings_the_first_are_kept_in_whichever_order_they_come():
    findings = [finding(i, tag) for i in range(MAX_FINDINGS) for tag in ("a", "b")]

    def kept(order):
        run = Run("run")
        for f in order:
            run.keep(f)
            run.keep(f.changed(last_step=f.last_step + 1))
        return run.findings, run.dropped_findings

    shuffled = sorted(findings, key=lambda f: (f.tag, f.index))  # source after source
    assert kept(findings)[1] == kept(shuffled)[1] == MAX_FINDINGS
    assert kept(findings)[0] == kept(shuffled)[0]
    assert {f.detected_step for f in kept(findings)[0].values()} == set(range(MAX_FINDINGS // 2))


class Counting(Splitter):
    """Adds up how much is looked at to find the next cut."""

    seen = 0

    def _next_cut(self, chunks, events):
        self.seen += len(events) + sum(len(c) for c in chunks)
        return super()._next_cut(chunks, events)


@pytest.mark.parametrize("kind", ["restarts", "settings", "boundaries"])
def test_the_work_of_splitting_grows_with_the_batch_not_with_its_square(kind):
    n = 4000
    steps = [i % 2 for i in range(n)] if kind == "restarts" else list(range(n))
    event = {
        "restarts": lambda i: None,
        "settings": lambda i: Params(i, {"lr": i}),
        "boundaries": lambda i: Boundary(i, "run", ""),
    }[kind]
    splitter = Counting()
    segments = splitter.split(Batch([chunk("loss", steps, [1.0] * n)], [e for i in range(n) if (e := event(i))]))
    assert sum(len(c) for s in segments for c in s.chunks) == n
    assert splitter.seen < 4 * n * WINDOW


def test_tags_that_all_begin_late_are_named_in_one_pass():
    """A hundred thousand tags, each in a record of its own: the roles are asked for once a tag."""
    n = 20_000
    session = Session("run", SETTINGS)
    session.feed("log", Batch([chunk(f"m{i}", [i], [1.0], row=[i]) for i in range(n)]))
    assert len(session.sources["log"].keys) == n
    assert run_dict(report_runs(session, KNOWLEDGE)[0])["skipped"] == {"points of series over the limit": n - MAX_TAGS}


def test_an_empty_path_is_not_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
    report = trainmon.replay("")
    assert [(e.source, e.fatal) for e in report.errors] == [("''", True)]
    assert report.runs == ()
