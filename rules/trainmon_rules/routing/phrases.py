"""Phrases, and where in a sentence they stand.

A phrase is a few words that must all stand close to each other, in any order. `a|b` is one or the other, `word*` the
beginning of a word, `=Word` a word in exactly these letters, `<n>` a number, `<%>` a percentage, and `not word` a word
that is denied ("doesn't learn"); without `not` a word doesn't count where it is denied directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainmon_rules.routing.text import Word

SLACK = 3  # further words that may stand between those of a phrase


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one word of a phrase may be."""

    words: frozenset[str]
    beginnings: tuple[str, ...] = ()
    exact: frozenset[str] = frozenset()
    number: str = ""  # "n" any number, "%" a percentage
    denied: bool = False

    def fits(self, word: Word) -> bool:
        """Return whether a word of a text is meant."""
        if self.denied != bool(word.denied) and (self.denied or word.denied == 1):
            return False
        if word.text in self.words or word.raw in self.exact or word.text.startswith(self.beginnings):
            return True
        return bool(self.number) and word.number and (self.number == "n" or word.text.endswith("%"))


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that must all be there."""

    patterns: tuple[Pattern, ...]

    def __len__(self) -> int:
        return len(self.patterns)

    def find(self, sentence: Sequence[Word]) -> tuple[int, ...]:
        """Return the places of its words in a sentence, where they stand closest together; () if it isn't there."""
        fitting = []
        for pattern in self.patterns:
            at = [n for n, word in enumerate(sentence) if pattern.fits(word)]
            if not at:
                return ()
            fitting.append(at)
        starts = sorted({n for at in fitting for n in at})
        for width in range(len(self), len(self) + SLACK + 1):
            for start in starts:
                near = [[n for n in at if start <= n < start + width] for at in fitting]
                if found := _different(near, ()):
                    return tuple(sorted(found))
        return ()


def _different(places: Sequence[Sequence[int]], taken: tuple[int, ...]) -> tuple[int, ...]:
    """Return one place from each list, no two the same; () if there are none."""
    if not places:
        return taken
    options = (n for n in places[0] if n not in taken)
    return next((found for n in options if (found := _different(places[1:], (*taken, n)))), ())


def phrase(text: str) -> Phrase:
    """Return the phrase that a line of the file stands for."""
    patterns = []
    denied = False
    for word in text.split():
        if word == "not":
            denied = True
            continue
        patterns.append(_pattern(word, denied))
        denied = False
    return Phrase(tuple(patterns))


def _pattern(text: str, denied: bool) -> Pattern:
    options = text.split("|")
    return Pattern(
        frozenset(o.casefold() for o in options if o[:1] not in "=<" and not o.endswith("*")),
        tuple(o[:-1].casefold() for o in options if o.endswith("*")),
        frozenset(o[1:] for o in options if o.startswith("=")),
        next((o[1:-1] for o in options if o in ("<n>", "<%>")), ""),
        denied,
    )


def phrase_of(words: Sequence[Word], exact: Sequence[str] = ()) -> Phrase:
    """Return the phrase of all words of a text, as they stand there."""
    patterns = []
    for word in words:
        letters = word.raw in exact
        patterns.append(
            Pattern(
                frozenset() if letters else frozenset({word.text}),
                exact=frozenset({word.raw}) if letters else frozenset(),
                denied=word.denied == 1,
            )
        )
    return Phrase(tuple(patterns))
