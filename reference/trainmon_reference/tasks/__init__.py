"""Tasks that need no download, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trainmon_reference.choices.named import chosen
from trainmon_reference.config import RunConfig
from trainmon_reference.tasks.autoencoder import Autoencoder
from trainmon_reference.tasks.bandit import Bandit
from trainmon_reference.tasks.base import Task
from trainmon_reference.tasks.contrastive import Contrastive
from trainmon_reference.tasks.gan import Gan
from trainmon_reference.tasks.images import Images
from trainmon_reference.tasks.preference import Preference
from trainmon_reference.tasks.sequence import Sequence
from trainmon_reference.tasks.tabular import Tabular
from trainmon_reference.tasks.text import Text

TASKS: Mapping[str, Callable[[RunConfig], Task]] = {
    "autoencoder": Autoencoder,
    "bandit": Bandit,
    "contrastive": Contrastive,
    "gan": Gan,
    "images": Images,
    "preference": Preference,
    "sequence": Sequence,
    "tabular": Tabular,
    "text": Text,
}


def build_task(config: RunConfig) -> Task:
    """Return the task of a run; BadConfig if its name isn't known."""
    return chosen("task", config.task, TASKS)(config)
