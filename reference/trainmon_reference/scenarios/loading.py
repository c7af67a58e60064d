"""Reading the scenario files, with errors that name file and scenario."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any

from trainmon_reference.config import RunConfig
from trainmon_reference.scenarios.scenario import HALVES, LogSpec, Resume, Scenario, Truth
from trainmon_rules.errors import BadConfig
from trainmon_rules.yamlfile import parse

KEYS = {"name", "about", "config", "log", "truth", "faults", "resume"}


@functools.cache
def load_scenarios() -> Mapping[str, Scenario]:
    """Return the shipped scenarios by name; BadConfig if a file can't be used."""
    found: dict[str, Scenario] = {}
    folder = resources.files("trainmon_reference").joinpath("scenarios")
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if file.name.endswith(".yaml"):
            for scenario in parse_scenarios(parse(file.read_text("utf-8"), file.name), file.name):
                if scenario.name in found:
                    raise BadConfig(f"{file.name}: {scenario.name}: the name is taken")
                found[scenario.name] = scenario
    return found


def parse_scenarios(data: Any, name: str) -> list[Scenario]:
    """Return the scenarios of one file: a mapping of families, each with its half and its scenarios."""
    if not isinstance(data, Mapping):
        raise BadConfig(f"{name}: a scenario file is a mapping of families")
    found = []
    for family, entry in data.items():
        if not isinstance(entry, Mapping) or set(entry) - {"common"} != {"half", "scenarios"}:
            raise BadConfig(f"{name}: {family}: needs half and scenarios (and may have common)")
        if entry["half"] not in HALVES:
            raise BadConfig(f"{name}: {family}: half is {' or '.join(HALVES)}, not {entry['half']!r}")
        common = entry.get("common", {})
        found += [_scenario(family, entry["half"], _merged(common, one), name) for one in entry["scenarios"]]
    return found


def _merged(common: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any]:
    """Lay a scenario over what its family has in common; config, log and truth are merged key by key."""
    merged = {**common, **one}
    for key in ("config", "log", "truth"):
        if key in common and key in one:
            merged[key] = {**common[key], **one[key]}
    return merged


def _scenario(family: str, half: str, entry: Mapping[str, Any], name: str) -> Scenario:
    where = f"{name}: {entry.get('name', family)}"
    if set(entry) - KEYS or not {"name", "about", "config", "log"} <= set(entry):
        raise BadConfig(f"{where}: a scenario has name, about, config, log, and may have truth, faults, resume")
    resume = entry.get("resume")
    return Scenario(
        name=entry["name"],
        family=family,
        half=half,
        about=entry["about"],
        config=RunConfig().changed(entry["config"]),
        log=_record(LogSpec, entry["log"], where),
        truth=_record(Truth, entry.get("truth", {}), where),
        faults=tuple(entry.get("faults", ())),
        resume=_record(Resume, resume, where) if resume else None,
    )


def _record(kind: Any, entry: Mapping[str, Any], where: str) -> Any:
    known = {field.name for field in dataclasses.fields(kind)}
    if unknown := sorted(set(entry) - known):
        raise BadConfig(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()})
