"""Reports made by hand, with everything that a report can hold."""

import math
import random

import pytest

from trainmon_rules.report import (
    Blind,
    Cause,
    Comparison,
    Curve,
    Fix,
    IncidentBrief,
    IncidentReport,
    Precursor,
    Report,
    Route,
    RunReport,
    SeriesComparison,
    SettingDifference,
    SourceError,
)

NASTY = "loss\x1b[31m[red]\u202eevil\n| `x` <b>&amp;</b> @me #1 ]( \ud800\x07"


def curve(tag, role, steps, value, attempt=1, spread=0.0, bad=()):
    means = [value(s) for s in steps]
    gone = [not math.isfinite(m) for m in means]
    return Curve(
        tag,
        role,
        attempt,
        tuple(steps),
        tuple(math.inf if g else m - spread for m, g in zip(means, gone, strict=True)),
        tuple(0.0 if g else m for m, g in zip(means, gone, strict=True)),
        tuple(-math.inf if g else m + spread for m, g in zip(means, gone, strict=True)),
        tuple(int(g) for g in gone) or bad,
    )


def incident(**changes):
    fields = {
        "id": "0123456789ab",
        "rule": "nonfinite",
        "symptom": "nonfinite",
        "severity": "critical",
        "state": "ended",
        "series": ("train/loss", "train/grad_norm"),
        "attempt": 1,
        "onset_step": 1500,
        "detected_step": 1510,
        "resolved_step": None,
        "onset_time": 1767225600.0,
        "detected_time": 1767225700.0,
        "recovery": None,
        "summary": "train/loss is not finite from step 1500, 10 reports in a row",
        "evidence": {"value": "NaN", "first bad step": 1500, "level before": 1.14826512, "reports in a row": 10},
        "precursors": (
            Precursor(
                "grad-spike",
                "grad-spike",
                "train/grad_norm",
                1460,
                1460,
                40,
                4,
                "grad norm 14.2 × its level of 1.02",
                "the gradient norm rose 4 reports (40 steps) before the loss broke",
            ),
        ),
        "also": ("train/grad_norm is infinite from step 1510",),
        "others": (("grad-spike", "warning"), ("divergence", "critical")),
        "causes": (
            Cause(
                "The learning rate is too high for this stage",
                "the gradient norm rose 4 reports before the loss broke",
                ("grad-spike led by 4 reports", "no warm-up: the rate is 1e-3 from the first step on"),
                ("the loss fell smoothly until step 1450",),
            ),
            Cause("A bad batch", "one step was enough to break it", (), ("the loss did not rise before",)),
        ),
        "ruled_out": (Cause("fp16 overflow", "precision is bf16"),),
        "routes": (
            Route("gradient-management", "primary", "NaN after a gradient spike: clip, then look at the rate"),
            Route("learning-rate-scheduling", "secondary", "no warm-up was logged"),
            Route("pytorch-engineering", "cross-pack", "anomaly detection finds the op", "pytorch-engineering"),
        ),
        "fixes": (
            Fix(
                "Clip the gradient norm at 1.0, just above its healthy level",
                "gradient-management",
                {"max_grad_norm": 1.0},
            ),
            Fix(
                "Lower the peak rate by a factor of 3 and warm up over 500 steps",
                "learning-rate-scheduling",
                {"learning_rate": 0.000333333333, "warmup_steps": 500},
            ),
            Fix("Skip the batch at step 1500 and see whether the run goes on", "training-loop-architecture"),
        ),
        "questions": ("Is the loss computed in fp16? Answer with --set precision=fp16 (or bf16, fp32)",),
    }
    return IncidentReport(**{**fields, **changes})


def run(**changes):
    fields = {
        "run": "exp/broken.jsonl",
        "sources": ("exp/broken.jsonl",),
        "points": 803,
        "axis": "step",
        "first_step": 0,
        "last_step": 1990,
        "attempts": 1,
        "status": "ended",
        "skipped": {"lists": 12, "corrupt records": 3},
        "roles": {"train_loss": ["train/loss"], "val_loss": ["val/loss"], "grad_norm": ["train/grad_norm"]},
        "unmapped": ("timer/io", "timer/fwd"),
        "blind": (
            Blind("loss-scale-collapse", "no loss scale is logged"),
            Blind("throughput-drop", "no throughput is logged"),
            Blind("periodic-stall", "no wall time is logged"),
            Blind("stall", "no wall time is logged"),
        ),
        "verdict": "critical",
        "incidents": (incident(),),
        "curves": broken_curves(),
    }
    return RunReport(**{**fields, **changes})


def broken_curves():
    noise = random.Random(7)
    loss = {s: 1.1 + 2.4 * math.exp(-s / 500) + noise.gauss(0, 0.04) for s in range(0, 2000, 10)}
    loss.update({900: 3.3, 1490: 2.0})
    train = curve("train/loss", "train_loss", range(0, 2000, 10), lambda s: loss[s] if s < 1500 else math.nan)
    val = curve("val/loss", "val_loss", range(100, 1500, 200), lambda s: 1.4 + 2.4 * math.exp(-s / 500))
    return (train, val)


def healthy(name="exp/good.jsonl", **changes):
    curves = (curve("train/loss", "train_loss", range(0, 2000, 10), lambda s: 1.1 + 2.4 * math.exp(-s / 500)),)
    return run(
        **{
            "run": name,
            "verdict": "healthy",
            "incidents": (),
            "curves": curves,
            "status": "finished",
            "skipped": {},
            "unmapped": (),
            **changes,
        }
    )


def comparison(**changes):
    """Series of every outcome, settings and incidents of every kind."""
    rate = "the same to step 990, parts at step 1000: 0.002 against 0.001 (2 times as high)"
    series = (
        SeriesComparison(
            "train_loss", "train/loss", "loss", "parted", "parts at step 1010: 2.41 against 2.05 (18 % higher), worse",
            200, 0, 1990, None, 1010, None, 2.41, 2.05, "against",
        ),
        SeriesComparison("val_loss", "val/loss", "val/loss", "unknown", "too few common steps to say (3)", 3, 0, 600),
        SeriesComparison(
            "grad_norm", "train/grad_norm", "train/grad_norm", "together",
            "together over 200 common steps, to step 1990: 0.5 against 0.51 (2 % lower)", 200, 0, 1990,
        ),
        SeriesComparison("learning_rate", "lr", "lr", "parted", rate, 200, 0, 1990, 990, 1000, None, 0.002, 0.001),
        SeriesComparison("throughput", "tokens/s", "tokens/s", "same", "the same over 200 common steps", 200, 0, 1990),
    )  # fmt: skip
    fields = {
        "against": "exp/good.jsonl",
        "chosen": "the longest of 3 runs there",
        "verdict": "healthy",
        "parted_step": 1000,
        "parted_series": "lr",
        "series": series,
        "settings": (
            SettingDifference("batch_size", 128, 64, True),
            SettingDifference("warmup_steps", 100.0, None, True),
            SettingDifference("train/flash", True, "no", False),
        ),
        "only_here": (IncidentBrief("0123456789ab", "nonfinite", "critical", 1500),),
        "only_there": (IncidentBrief("a" * 12, "plateau", "info", 700),),
        "notes": ("300 more settings differ",),
    }
    return Comparison(**{**fields, **changes})


@pytest.fixture
def make():
    """The makers of hand-made reports: `make.run(...)`, `make.incident(...)`, `make.healthy(...)`."""
    return Make


class Make:
    NASTY = NASTY
    run = staticmethod(run)
    healthy = staticmethod(healthy)
    incident = staticmethod(incident)
    curve = staticmethod(curve)
    comparison = staticmethod(comparison)
    error = SourceError

    @staticmethod
    def report(*runs, errors=()):
        return Report(tuple(runs or (run(),)), tuple(errors))

    @staticmethod
    def many():
        """Three runs, of which one has many incidents, and two errors."""
        spike = incident(
            id="a" * 12,
            symptom="loss-spike",
            rule="loss-spike",
            severity="warning",
            state="resolved",
            onset_step=900,
            detected_step=900,
            resolved_step=920,
            recovery="back at its level after 2 reports",
            summary="train/loss rose to 3.3, 12 sigma above its level of 1.49",
            evidence={"value": 3.3, "level": 1.49, "sigmas": 12.04},
            precursors=(),
            also=(),
            others=(),
            causes=(),
            ruled_out=(),
            routes=(),
            fixes=(),
            questions=(),
            superseded=True,
        )
        note = incident(
            id="b" * 12,
            symptom="lr-schedule",
            severity="info",
            state="firing",
            onset_step=0,
            detected_step=640,
            onset_time=None,
            summary="the learning rate never moves",
        )
        broken = run(attempts=2, incidents=(spike, incident(attempt=2), note))
        short = run(run="exp/short.csv", verdict="insufficient-data", incidents=(), points=4, curves=(), last_step=3)
        errors = (
            SourceError("exp/gone.jsonl", "no such file or directory", fatal=True),
            SourceError("exp/broken.jsonl", "not valid JSON", 1234, 17),
        )
        return Report((healthy(), short, broken), errors)
