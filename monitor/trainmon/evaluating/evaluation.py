"""All of an evaluation: find the traces, replay them, judge, add up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike, fspath
from pathlib import Path

from trainmon.evaluating import scoring
from trainmon.evaluating.contest import peer_score
from trainmon.evaluating.intervals import RESAMPLES
from trainmon.evaluating.judging import judge
from trainmon.evaluating.telling import traceless, trial
from trainmon.evaluating.traces import Trace, find_traces, read_trace, truths
from trainmon_reference.peers import PEERS
from trainmon_reference.scenarios.scenario import HALVES as SPLIT
from trainmon_reference.truth import Labelled
from trainmon_rules.debug import debugging
from trainmon_rules.errors import BadInput
from trainmon_rules.evaluation import Evaluation
from trainmon_rules.report import SourceError
from trainmon_rules.state import Settings

HALVES = (*SPLIT, "all")

Progress = Callable[[int, int], None]
"""Told after each trace: how many were replayed, of how many."""


def evaluate(
    path: str | PathLike[str],
    half: str = "test",
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Replay traces with a known truth and score what is found in them, by trainmon and by its peers.

    Parameters
    ----------
    path : str or path
        A folder of traces: folders with a log and its `truth.json`, as `trainmon simulate` writes them.
    half : str
        Which families: "tuning", "test" or "all". Thresholds may only be chosen on the tuning half.
    settings : Settings, optional
        Rules and roles; the shipped ones by default.
    progress : callable, optional
        Told how many traces were replayed, of how many.

    Returns
    -------
    Evaluation
        The figures; a trace that can't be used stands in `errors`, and the others are scored.

    Raises
    ------
    BadInput
        If there is no such folder, or it holds no trace of the half.
    """
    root = Path(fspath(path))
    labelled, errors = truths(root, find_traces(root))
    chosen = [one for one in labelled if half in ("all", one[2].half)]
    if not chosen:
        raise BadInput(str(root), _why_none(labelled, errors, half))
    traces = _read(chosen, settings or Settings.default(), errors, progress)
    if not traces:
        raise BadInput(str(root), f"none of its {len(chosen)} traces can be used; the first: {errors[0].error}")
    return _scored(half, traces, errors)


def _why_none(labelled: Sequence[tuple[Path, str, Labelled]], errors: Sequence[SourceError], half: str) -> str:
    if not labelled:
        return f"none of its {len(errors)} traces can be used; the first: {errors[0].source}: {errors[0].error}"
    return f"holds no trace of the {half} half, but {len(labelled)} of the other (--half all takes both)"


def _read(
    chosen: Sequence[tuple[Path, str, Labelled]],
    settings: Settings,
    errors: list[SourceError],
    progress: Progress | None,
) -> list[Trace]:
    """Replay each trace; one that can't be used becomes an error."""
    traces = []
    for number, (folder, name, truth) in enumerate(chosen, 1):
        try:
            traces.append(read_trace(folder, name, truth, settings))
        except BadInput as error:
            errors.append(SourceError(name, error.error, fatal=True))
        except Exception as error:
            if debugging():
                raise
            errors.append(SourceError(name, f"internal error: {type(error).__name__}: {error}", fatal=True))
        if progress is not None:
            progress(number, len(chosen))
    return traces


def _scored(half: str, traces: Sequence[Trace], errors: Sequence[SourceError]) -> Evaluation:
    verdicts = [judge(t, t.ours) for t in traces]
    ours = scoring.counted(verdicts)
    total, rows = scoring.detections(ours)
    calm = scoring.quiet(ours)
    peers = tuple(
        peer_score(peer, scoring.counted(judge(t, t.peers[peer.name]) for t in traces), ours) for peer in PEERS
    )
    return Evaluation(
        half=half,
        runs=len(traces),
        resamples=RESAMPLES,
        total=total,
        symptoms=rows,
        quiet=calm,
        peers=peers,
        traceless=traceless(verdicts),
        bars=scoring.bars(total, calm, peers),
        trials=tuple(map(trial, verdicts)),
        errors=tuple(errors),
    )
