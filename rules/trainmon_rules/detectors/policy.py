"""What the detectors for preference and RLHF runs share: whether the run is one."""

from __future__ import annotations

import numpy as np

from trainmon_rules.detectors.base import Detector
from trainmon_rules.points import FloatArray
from trainmon_rules.series import Block, View
from trainmon_rules.series.robust import median

ANSWERS = (
    "reward_margin", "reward_accuracy", "implicit_reward", "logps", "reward_zero_std", "reward_spread",
    "answer_length", "answers_cut",
)  # fmt: skip
"""Roles that only runs have whose policy is a language model, or anything else that is tuned on answers."""


RLHF = ("objective/", "ppo/mean_", "rlhf")
"""In the names under which TRL's trainers log rewards and divergences of a policy that answers."""

NO_ANSWERS = "nothing says that the run tunes a policy on answers (--set preference_method=…)"


def tunes_answers(detector: Detector, block: Block, at: int) -> bool:
    """Return whether a run tunes a policy on answers, by preferences or rewards, as far as is known at a point.

    A KL divergence or an entropy alone may be that of a VAE, of distillation or of an agent in a game: there they
    mean something else, and other fields own them.
    """
    if detector.setting("preference_method") is not None:
        return True
    if any(len(detector.peer(role, block, at, 1)) for role in ANSWERS):
        return True
    tags = [detector.series.tag, *(tag for tag, _ in detector.peer.every("reward", block, at, 1))]
    return any(word in tag for tag in tags for word in RLHF)


def rose(view: View, reports: int) -> tuple[float, float] | None:
    """Return the first and the last level of a view's series if it has risen beyond its noise, None if not."""
    first, last = view.first[np.isfinite(view.first)], view.finite[-reports:]
    if len(first) < 3 or len(last) < 3:
        return None
    before, now = median(first), median(last)
    return (before, now) if now - before > 4 * _error(first, last) else None


def _error(first: FloatArray, last: FloatArray) -> float:
    """Standard error of the difference of the two levels."""
    return 1.25 * float(np.hypot(first.std() / np.sqrt(len(first)), last.std() / np.sqrt(len(last))))
