"""The keys of a record, looked at once: which one is the step, the epoch, the time, the mode.

Records of one shape (the same keys in the same order) are most of any log. All that can be known from the keys
alone is worked out here, so that a record costs no search.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from trainmon.readers.values import clean_name, find_key

# In order of preference. An episode stands before bare "timestep" and "steps", which often are its length.
_OPTIMIZER = (
    "step", "_step", "global_step", "trainer/global_step", "train/global_step", "iteration", "iter", "it",
    "current_steps", "current_step", "num_updates", "update_step", "update", "optimizer_step", "step_num",
    "total_step", "total_steps_done", "training_iteration", "steps",
)  # fmt: skip
STEP_KEYS = (
    *_OPTIMIZER[:-2], "global_samples", "time/total_timesteps", "total timesteps", "total_timesteps", "env_step",
    "training_iteration", "episode", "timesteps", "timestep", "steps",
)  # fmt: skip
EPOCH_KEYS = ("epoch", "epochs", "train/epoch", "current_epoch")
TIME_KEYS = (
    "_timestamp", "timestamp", "wall_time", "walltime", "wall time", "time", "date", "datetime", "asctime", "ts",
)  # fmt: skip
TOTAL_KEYS = ("max_steps", "total_steps", "max_iters", "num_iterations", "total_iterations")
MODE_KEYS = ("mode", "split", "phase", "stage", "subset", "type")
MODES = {
    "val": "val/", "valid": "val/", "validation": "val/", "dev": "val/", "eval": "eval/", "evaluation": "eval/",
    "evaluate": "eval/", "test": "test/", "testing": "test/",
}  # fmt: skip
FINAL = "final/"  # before the tags of a trainer's closing summary, whose numbers are means over the whole run
_SUMMARY = ("train_runtime", "train/train_runtime")  # Hugging Face's Trainer, on its last line only
_HELD_OUT = re.compile(r"(val|valid|validation|eval|evaluation|test)[_/. ]")


@dataclass(slots=True)
class Bin:
    """Records of one shape whose step and time stand at the same positions; `tags` are its columns."""

    tags: list[tuple[int, str]]
    row: list[int] = field(default_factory=list)
    step: list[int] = field(default_factory=list)
    time: list[float] = field(default_factory=list)
    cells: list[tuple[Any, ...]] = field(default_factory=list)


@dataclass(slots=True)
class Shape:
    """What the keys of a record say.

    Attributes
    ----------
    keys : tuple of str
        The record's keys in order.
    step_at : tuple of int
        Positions of the step-like keys, the best first.
    epoch_at, total_at : int or None
        Position of the epoch and of the planned number of steps.
    time_at, mode_at, metric_at : tuple of int
        Positions of keys that may hold a wall time, that name the split, and that are no epoch.
    final : bool
        Whether this is the trainer's closing summary.
    """

    keys: tuple[str, ...]
    step_at: tuple[int, ...]
    epoch_at: int | None
    total_at: int | None
    time_at: tuple[int, ...]
    mode_at: tuple[int, ...]
    metric_at: tuple[int, ...]
    final: bool
    axis_at: dict[str, int | None] = field(default_factory=dict)
    bins: dict[tuple[int | None, int | None, str], Bin] = field(default_factory=dict)

    @classmethod
    def of(cls, keys: tuple[str, ...]) -> Shape:
        """Look at a record's keys."""
        at = {k.lower(): i for i, k in reversed(list(enumerate(keys)))}
        at.update({k: i for i, k in enumerate(keys)})  # a key as it is written comes before its capitalised twin
        found = [tuple(at[n] for n in names if n in at) for names in (STEP_KEYS, EPOCH_KEYS, TOTAL_KEYS)]
        return cls(
            keys,
            found[0],
            found[1][0] if found[1] else None,
            found[2][0] if found[2] else None,
            tuple(at[n] for n in TIME_KEYS if n in at),
            tuple(at[n] for n in MODE_KEYS if n in at),
            tuple(i for i in range(len(keys)) if i not in found[1]),
            any(k in at for k in _SUMMARY),
        )

    def prefix(self, cells: tuple[Any, ...]) -> str:
        """Return what goes before the tags of a record of held-out data ("val/"), "" for training."""
        for at in self.mode_at:
            mode = cells[at]
            if isinstance(mode, str):
                found = MODES.get(mode) or MODES.get(mode.lower())
                if found:
                    return found
        return ""

    def bin(self, step_at: int | None, time_at: int | None, prefix: str) -> Bin:
        """Return a new bin for records whose step and time come from these positions."""
        tags: dict[str, int] = {}
        for at, key in enumerate(self.keys):
            if at not in (step_at, time_at):
                tags[self._tag(key, prefix, at not in self.metric_at)] = at  # of two equal names the last wins
        b = self.bins[step_at, time_at, prefix] = Bin([(at, tag) for tag, at in tags.items()])
        return b

    def _tag(self, key: str, prefix: str, epoch: bool) -> str:
        if epoch:
            return clean_name(key)
        if self.final:
            prefix = FINAL
        elif prefix and _HELD_OUT.match(key.lower()):
            prefix = ""
        return clean_name(prefix + key)


def same_axis(shape: Shape, axis: str) -> int | None:
    """Return the position of `axis` in a record, or of another name of the same axis.

    nanoGPT says "step" at evaluations and "iter" between them: both count optimizer steps. An episode or a
    number of samples never stands in for a step.
    """
    if axis in shape.keys:
        return shape.keys.index(axis)
    if axis.lower() not in _OPTIMIZER:
        return None
    key = find_key(shape.keys, _OPTIMIZER)
    return None if key is None else shape.keys.index(key)
