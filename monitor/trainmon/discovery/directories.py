"""Searching a directory for runs.

Event files of one directory are one run; files of other formats whose names say that they tell the same run
(`metrics.csv`, `trainer_state.json`, …) become further sources of it, the richest first. Keras' `train/` and
`validation/` and an estimator's `eval/` belong to the run above them. MLflow's metric files of one run are one
run. Any other log is a run of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from trainmon.discovery.eventfiles import EventFile, chains
from trainmon.discovery.folders import Folder, showable, walk
from trainmon.discovery.recognise import Seen, head_of, recognise
from trainmon.discovery.specs import EVALUATION, RunSpec, SourceSpec, distinct
from trainmon.readers import sniff
from trainmon_rules.errors import BadInput
from trainmon_rules.roles import RoleTable

TELLING = (
    # JSON lines, CSV, a trainer's state, text: the richest first
    r"metrics\.jsonl", r"trainer_log\.jsonl", r"progress\.json", r"metrics\.json", r"scalars\.json",
    r"\d{8}_\d{6}(\.log)?\.json", r"(log|history)\.jsonl",
    r"metrics\.csv", r"results\.csv", r"progress\.csv", r"log\.csv", r"history\.csv",
    r"trainer_state\.json",
    r"log\.txt", r"(train|training|output)\.log", r"\d{8}_\d{6}\.log",
)  # fmt: skip
"""Names of logs that tell the run of their directory, however many formats it is told in."""

SIBLINGS = EVALUATION | {"train", "training", "test", "dev"}
SIBLING = re.compile(r"(eval|test|val|validation)_.+")
CHECKPOINT = re.compile(r"checkpoint-(\d{1,18})")
HPARAMS = re.compile(r"\d{9,11}\.\d+")  # torch's add_hparams writes into a directory named by the time


@dataclass(slots=True)
class Contents:
    """The logs of one directory, by what they are."""

    events: list[EventFile] = field(default_factory=list)
    telling: dict[int, list[Path]] = field(default_factory=dict)  # by place in TELLING
    mlflow: list[Path] = field(default_factory=list)
    others: list[Path] = field(default_factory=list)
    unreadable: list[Path] = field(default_factory=list)

    @property
    def main(self) -> bool:
        """Whether they hold a run that is named after the directory."""
        return bool(self.events or self.telling)


def search(root: Path, shown: str, roles: RoleTable) -> list[RunSpec]:
    """Return the runs below a directory, in the order of their names; BadInput if there is none."""
    tree, state = walk(root)
    if tree.error:
        raise BadInput(shown, tree.error)
    found = _Search(root, roles)
    runs = list(found.visit(tree))
    if runs:
        return distinct(runs)
    if found.wandb is not None:
        sniff(found.name_of(found.wandb), head_of(found.wandb)[0])  # says how to get at its content
    why = "; links in it are not followed, give what they point to" if state.links else ""
    raise BadInput(shown, f"holds no training log{why}")


class _Search:
    """One search: what was looked at, and what has been taken into a run already."""

    def __init__(self, root: Path, roles: RoleTable) -> None:
        self.root = root
        self.root_name = showable(root.resolve().name) or "root"
        self.roles = roles
        self.wandb: Path | None = None
        self._contents: dict[Path, Contents] = {}
        self._taken: set[Path] = set()

    # ------------------------------------------------------------------ names
    def name_of(self, path: Path) -> str:
        """Return a file's name relative to the root."""
        return showable(path.relative_to(self.root).as_posix())

    def _run(self, parts: Iterable[str], sources: Iterable[SourceSpec]) -> RunSpec:
        return RunSpec(showable("/".join(parts)) or self.root_name, tuple(sources), self.root_name)

    def _source(self, paths: list[Path], prefix: str = "", rank: int = 0) -> SourceSpec:
        names = tuple(self.name_of(p) for p in paths)
        return SourceSpec(names[0], tuple(paths), prefix, rank, names if len(names) > 1 else ())

    # ------------------------------------------------------------------ one directory
    def contents(self, folder: Folder) -> Contents:
        """Return the logs of a directory."""
        known = self._contents.get(folder.path)
        if known is None:
            known = self._contents[folder.path] = Contents()
            for path in folder.files:
                place = _place(path.name)
                seen = recognise(path, place is not None, self.roles)
                if seen is not None:
                    self._sort_in(seen, place, known)
        return known

    def _sort_in(self, seen: Seen, place: int | None, into: Contents) -> None:
        if seen.event is not None:
            into.events.append(seen.event)
        elif seen.kind == "wandb":
            self.wandb = self.wandb or seen.path
        elif seen.kind == "mlflow":
            into.mlflow.append(seen.path)
        elif seen.kind == "unreadable":
            into.unreadable.append(seen.path)
        elif place is not None:
            into.telling.setdefault(place, []).append(seen.path)
        else:
            into.others.append(seen.path)

    def visit(self, folder: Folder) -> Iterator[RunSpec]:
        """Yield the runs of a directory and of those below it."""
        if folder.error:
            yield self._run([*folder.parts], [self._source([folder.path])])
            return
        here = self.contents(folder)
        if (folder.name == "metrics" or here.mlflow) and (metrics := list(self._mlflow(folder, ""))):
            yield self._run(folder.parts[:-1] if folder.name == "metrics" else folder.parts, metrics)
        if folder.path not in self._taken:
            self._adopt(folder, here)
            sources = list(self._sources(folder, here))
            if sources:
                yield self._run(folder.parts, sources)
        for path in [*here.others, *here.unreadable]:
            if path not in self._taken:
                yield self._run([*folder.parts, path.name], [self._source([path])])
        for below in folder.folders:
            yield from self.visit(below)

    def _mlflow(self, folder: Folder, prefix: str) -> Iterator[SourceSpec]:
        """Yield MLflow's metric files, one a tag; a tag with "/" in its name lies in a sub-directory."""
        here = self.contents(folder)
        for path in here.mlflow:
            yield self._source([path], prefix)
        here.mlflow = []
        for below in folder.folders:
            yield from self._mlflow(below, f"{prefix}{showable(below.path.name)}/")

    # ------------------------------------------------------------------ the run of a directory
    def _adopt(self, folder: Folder, here: Contents) -> None:
        """Take into a directory's run what trainers write into directories below it."""
        self._newest_state(folder, here)
        for below in folder.folders:
            if here.events and HPARAMS.fullmatch(below.name):
                self._take_events(below, here)
            elif here.telling and below.name == "runs":  # Hugging Face's, beside its trainer state
                for each in (below, *below.folders):
                    self._take_events(each, here)

    def _take_events(self, folder: Folder, into: Contents) -> None:
        found = self.contents(folder)
        if found.events and not found.telling:
            into.events.extend(found.events)
            found.events = []

    def _newest_state(self, folder: Folder, here: Contents) -> None:
        """Of the trainer states in a directory and its checkpoints, keep the one that tells most."""
        place = TELLING.index(r"trainer_state\.json")
        states = [(_global_step(p), 1, p) for p in here.telling.pop(place, [])]
        for below in folder.folders:
            if match := CHECKPOINT.fullmatch(below.name):
                found = self.contents(below)
                states += [(int(match.group(1)), 0, p) for p in found.telling.pop(place, [])]
        if states:
            here.telling[place] = [max(states)[2]]

    def _sources(self, folder: Folder, here: Contents) -> Iterator[SourceSpec]:
        siblings = self._siblings(folder, here)
        own = folder.path.name if folder.parts else self.root_name
        prefix = f"{showable(own)}/" if here.events and not siblings and own.lower() in EVALUATION else ""
        parts = [(here, prefix), *((self.contents(f), f"{showable(f.path.name)}/") for f in siblings)]
        self._taken.update(f.path for f in siblings)
        for found, prefix in parts:
            yield from self._of_events(found, prefix)
        first = 1 if any(found.events for found, _ in parts) else 0
        told = [(paths, prefix) for found, prefix in parts for _, paths in sorted(found.telling.items())]
        for rank, (paths, prefix) in enumerate(told, first):
            yield self._source(paths, prefix, rank)

    def _of_events(self, here: Contents, prefix: str) -> Iterator[SourceSpec]:
        for chain in chains(here.events):
            yield self._source([f.path for f in chain], prefix)
        for path in [p for p in here.unreadable if "tfevents" in p.name and here.events]:
            self._taken.add(path)
            yield self._source([path], prefix)

    def _siblings(self, folder: Folder, here: Contents) -> list[Folder]:
        """Return the sub-directories that hold this run's training and validation curves."""
        exact = [f for f in folder.folders if f.name in SIBLINGS and self.contents(f).events]
        loose = [f for f in folder.folders if SIBLING.fullmatch(f.name) and self.contents(f).events]
        paired = len(exact) > 1 or (bool(loose) and any(f.name.startswith("train") for f in exact))
        return [f for f in folder.folders if f in exact or f in loose] if here.main or paired else []


def _place(name: str) -> int | None:
    plain = name.removesuffix(".gz")
    return next((i for i, pattern in enumerate(TELLING) if re.fullmatch(pattern, plain, re.IGNORECASE)), None)


def _global_step(path: Path) -> int:
    """Return the step at which a trainer state was saved, 0 if its head doesn't tell."""
    try:
        found = re.search(rb'"global_step":\s*(\d{1,18})', head_of(path)[0])
    except OSError:
        return 0
    return int(found.group(1)) if found else 0
