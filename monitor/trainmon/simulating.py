"""`trainmon simulate`: scenarios of the reference core, trained side by side; torch is loaded in the workers only."""

from __future__ import annotations

import difflib
import importlib.util
import shutil
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from trainmon.pool import Failed, cores, spread
from trainmon.progress import counting
from trainmon_reference.layout import draft_of
from trainmon_reference.scenarios import Scenario, load_scenarios
from trainmon_rules.errors import BadConfig, BadOutput

Task = tuple[Scenario, int, Path]
CLOSE = 3  # names offered for one that isn't known


def choose(names: Iterable[str], half: str | None = None) -> list[Scenario]:
    """Return scenarios by name, or without names all, or those of one half.

    Raises
    ------
    BadConfig
        For each name that isn't known, with the closest ones.
    """
    known = load_scenarios()
    wanted = list(dict.fromkeys(names))
    if unknown := [name for name in wanted if name not in known]:
        raise BadConfig(*(f"no scenario is called {name!r}; {_hint(name, known)}" for name in unknown))
    if wanted:
        return [known[name] for name in wanted]
    return [scenario for scenario in known.values() if half in (None, scenario.half)]


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), CLOSE, 0.5)
    return f"did you mean {', '.join(close)}?" if close else "`trainmon simulate --list` lists all"


def simulate_all(
    scenarios: Sequence[Scenario], seeds: Sequence[int], out: Path, jobs: int | None = None
) -> tuple[int, list[str]]:
    """Train each scenario with each seed and write the runs.

    Parameters
    ----------
    scenarios, seeds : sequences
        Which, and how often.
    out : Path
        Where to; made if it isn't there.
    jobs : int, optional
        Processes at a time; one a processor by default. The runs don't depend on it.

    Returns
    -------
    written : int
        Runs that are whole.
    problems : list of str
        A line for each other one, in the order of the scenarios.

    Raises
    ------
    BadConfig
        If torch isn't installed.
    BadOutput
        If the folder can't be made.
    """
    if importlib.util.find_spec("torch") is None:
        raise BadConfig("simulate needs torch, which is not installed: pip install 'trainmon[reference]'")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadOutput(str(out), (error.strerror or str(error)).lower()) from None
    tasks: list[Task] = [(scenario, seed, out) for scenario in scenarios for seed in seeds]
    failed: dict[int, str] = {}
    done: set[int] = set()
    try:
        with counting("simulating") as progress, closing(spread(train, tasks, jobs or cores())) as results:
            for number, result in results:
                done.add(number)
                if isinstance(result, Failed):
                    failed[number] = result.why
                if progress is not None:
                    progress(len(done), len(tasks))
    finally:
        for scenario, seed, _ in (task for number, task in enumerate(tasks) if number not in done):
            shutil.rmtree(draft_of(out, scenario.name, seed), ignore_errors=True)
    lines = [f"{tasks[n][0].name}, seed {tasks[n][1]}: {failed[n]}" for n in sorted(failed)]
    return len(tasks) - len(failed), lines


def train(task: Task) -> None:
    """Train one scenario with one seed, in a worker."""
    from trainmon_reference.simulate import simulate  # noqa: PLC0415 - loads torch

    simulate(*task)
