"""A scenario becomes a log and the truth beside it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from trainmon_reference.config import RunConfig
from trainmon_reference.faults import build_fault
from trainmon_reference.logs import open_log, thinned
from trainmon_reference.record import Record
from trainmon_reference.scenarios import Scenario
from trainmon_reference.trainer import Trainer
from trainmon_rules.vocabulary import vocabulary

SCHEMA = "trainmon.truth/1"
TRUTH = "truth.json"
PROBED = {"dead_units", "activation_scale"}


def simulate(scenario: Scenario, seed: int, out: Path) -> Path:
    """Train a scenario and write its log and `truth.json`.

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
    """
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    folder = out / scenario.name / f"seed-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    config = dataclasses.replace(scenario.config, seed=seed)
    log = open_log(folder, scenario.log, settings_of(config))
    for attempt, records in enumerate(_attempts(scenario, config)):
        if attempt:
            log.resume()
        for record in thinned(records, scenario.log):
            log.write(record)
    log.close()
    (folder / TRUTH).write_text(json.dumps(truth_of(scenario, seed), indent=1) + "\n", encoding="utf-8")
    return folder


def _attempts(scenario: Scenario, config: RunConfig) -> Iterator[Iterator[Record]]:
    """Yield the records of each attempt, to be used up in turn."""
    faults = [build_fault(entry) for entry in scenario.faults]
    probe = bool(PROBED & set(scenario.log.roles))
    first = Trainer(config, faults, probe=probe)
    if scenario.resume is None:
        yield first.run()
        return
    stop = scenario.resume
    yield first.run(until=stop.at)
    second = Trainer(config.changed(stop.change), faults, first.clock, probe=probe)
    checkpoint = first.checkpoint
    if checkpoint is None or checkpoint.step != stop.since:
        raise ValueError(f"{scenario.name}: no checkpoint at {stop.since}; save_steps has to fit")
    checkpoint.restore(second, stop.without)
    yield second.run()


def settings_of(config: RunConfig) -> dict[str, Any]:
    """Return what a trainer would log of its config: the settings of the vocabulary that are not off."""
    return {key: value for key, value in dataclasses.asdict(config).items() if key in vocabulary() and value}


def truth_of(scenario: Scenario, seed: int) -> dict[str, Any]:
    """Return the content of `truth.json`."""
    head: Mapping[str, Any] = {
        "schema": SCHEMA,
        "scenario": scenario.name,
        "family": scenario.family,
        "half": scenario.half,
        "seed": seed,
        "label": "healthy" if scenario.healthy else "faulty",
        "about": scenario.about,
    }
    return {**head, **dataclasses.asdict(scenario.truth), "torch": torch.__version__}
