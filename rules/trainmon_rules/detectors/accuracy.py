"""Which metrics are accuracies, and at what share of right answers a guesser stands."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from trainmon_rules.points import FloatArray
from trainmon_rules.roles.tags import plain

ERRORS = frozenset({"err", "error", "errors"})
ACCURACIES = frozenset({"acc", "accuracy", "top"})
TOPS = (3, 5, 10)  # as in top-5; another number behind a name only counts names that collide
OTHERS = frozenset({
    # of tokens and pairs, where chance isn't one over the classes
    "token", "tokens", "mlm", "masked", "lm", "char", "word", "wer", "cer", "phoneme", "span", "exact", "em", "match",
    "contrastive", "clip", "itm", "itc", "i2t", "t2i", "nce", "reward", "rewards", "pair", "pairs", "preference",
    "margin", "rank", "retrieval",
    # of boxes, masks and pixels, where most of it is background
    "rcnn", "rpn", "roi", "fg", "bg", "bbox", "box", "mask", "pixel", "seg", "macc", "aacc", "miou",
    # of an adversary, who is meant to guess
    "adv", "adversarial", "disc", "discriminator", "gan", "real", "fake", "domain",
})  # fmt: skip
"""Words that make it another accuracy than that of a classifier."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """An accuracy: right if among the `top` best answers; `error` if its complement is logged."""

    top: int
    error: bool

    def shares(self, values: FloatArray, scale: float) -> FloatArray:
        """Return the shares of right answers of values logged on that scale (1 or 100)."""
        return 1.0 - values / scale if self.error else values / scale

    def chance(self, classes: int) -> float:
        """Return the share of right answers of a guesser, NaN where all answers are right."""
        return self.top / classes if self.top < classes else math.nan


def accuracy_of(tag: str) -> Accuracy | None:
    """Return what kind of accuracy a tag names, None if it names none.

    Parameters
    ----------
    tag : str
        As logged, with its directories.
    """
    words = plain(tag).replace("/", "_").split("_")
    split = [w for word in words for w in _numbered(word)]
    named = set(split)
    error = bool(named & ERRORS and named & {"top", "rate", "classification", "cls"})
    if named & OTHERS or not (error or named & (ACCURACIES - {"top"}) or _is_top(split)):
        return None
    numbers = [int(w) for w in split if w.isdigit() and int(w) in TOPS]
    return Accuracy(numbers[0] if numbers else 1, error)


def _is_top(words: list[str]) -> bool:
    """Whether it is a bare top-n: a number right behind the word."""
    return any(a == "top" and b.isdigit() for a, b in itertools.pairwise(words))


def _numbered(word: str) -> list[str]:
    """Split the number off a word: acc5, top1."""
    letters = word.rstrip("0123456789")
    return [letters, word[len(letters) :]] if letters in ACCURACIES and letters != word else [word]
