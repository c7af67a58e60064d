"""A scenario becomes a log and the truth beside it."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from trainmon_reference.config import RunConfig
from trainmon_reference.faults import build_fault
from trainmon_reference.layout import draft_of, folder_of
from trainmon_reference.logs import open_log, thinned
from trainmon_reference.record import Record, role_of
from trainmon_reference.scenarios import Scenario
from trainmon_reference.trainer import Trainer
from trainmon_reference.truth import FILE, truth_of, write_truth
from trainmon_rules.errors import BadConfig, BadOutput
from trainmon_rules.vocabulary import vocabulary

PROBED = {"dead_units", "activation_scale"}
SCALED = {"loss_scale", "loss_scale_window"}  # settings of a loss scaler
COUNTS = {"eval_steps", "save_steps", "decay_steps", "early_stopping", "skip_batches", "dataset_size"}
"""Settings that aren't logged where they are 0: it isn't a number of theirs, but says that they are off."""


def simulate(scenario: Scenario, seed: int, out: Path) -> Path:
    """Train a scenario and write its log and `truth.json`.

    The run is written under a hidden name and gets its own when it is whole.

    Parameters
    ----------
    scenario : Scenario
        Which one.
    seed : int
        Of the run; the same seed gives the same bits on one machine and one torch.
    out : Path
        Folder for all; the run's own is `NAME/seed-N` in it and is made anew.

    Returns
    -------
    Path
        The run's folder.

    Raises
    ------
    BadConfig
        If the scenario can't be trained or logged as it says.
    BadOutput
        If the folder is there and holds no simulated run.
    """
    folder = folder_of(out, scenario.name, seed)
    if folder.exists() and not (folder / FILE).is_file():
        raise BadOutput(str(folder), "it is there and holds no simulated run")
    draft = draft_of(out, scenario.name, seed)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        _write(scenario, seed, draft)
        if folder.exists():
            shutil.rmtree(folder)
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _write(scenario: Scenario, seed: int, folder: Path) -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    config = dataclasses.replace(scenario.config, seed=seed)
    with closing(open_log(folder, scenario.log, settings_of(config))) as log:
        for attempt, records in enumerate(attempts(scenario, config)):
            if attempt and scenario.resume is not None:
                log.resume(scenario.resume.since)
            for record in thinned(records, scenario.log):
                log.write(record)
    write_truth(folder, truth_of(scenario, seed, log, str(torch.__version__)))


def attempts(scenario: Scenario, config: RunConfig) -> Iterator[Iterator[Record]]:
    """Yield the records of each attempt at a scenario with a config, to be used up in turn."""
    faults = [build_fault(entry) for entry in scenario.faults]
    probe = bool(PROBED & {role_of(role) for role in scenario.log.roles})
    first = Trainer(config, faults, probe=probe)
    if scenario.resume is None:
        yield first.run()
        return
    stop = scenario.resume
    yield first.run(until=stop.at)
    second = Trainer(config.changed(stop.change), faults, first.clock, probe=probe)
    checkpoint = first.checkpoint
    if checkpoint is None or checkpoint.step != stop.since:
        raise BadConfig(f"{scenario.name}: no checkpoint at {stop.since}; save_steps has to fit")
    checkpoint.restore(second, stop.without)
    yield second.run()


def settings_of(config: RunConfig) -> dict[str, Any]:
    """Return what a trainer would log of its config, by the vocabulary; what it makes no use of is left out."""
    unused = {key for key in COUNTS if not getattr(config, key)}
    if config.precision != "fp16":
        unused |= SCALED
    if not config.task.startswith("preference"):
        unused.add("preference_beta")
    told = dataclasses.asdict(config)
    return {key: value for key, value in told.items() if key in vocabulary() and key not in unused and value != ""}
