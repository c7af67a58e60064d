"""Tasks that need no download, by name."""

from __future__ import annotations

from collections.abc import Mapping

from trainmon_reference.config import RunConfig
from trainmon_reference.tasks.base import Task
from trainmon_reference.tasks.images import Images
from trainmon_reference.tasks.sequence import Sequence
from trainmon_reference.tasks.tabular import Tabular
from trainmon_reference.tasks.text import Text
from trainmon_rules.errors import BadConfig

TASKS: Mapping[str, type[Task]] = {"images": Images, "sequence": Sequence, "tabular": Tabular, "text": Text}


def build_task(config: RunConfig) -> Task:
    """Return the task of a run; BadConfig if its name isn't known."""
    if config.task not in TASKS:
        raise BadConfig(f"task: unknown {config.task!r}; known: {', '.join(TASKS)}")
    return TASKS[config.task](config)
