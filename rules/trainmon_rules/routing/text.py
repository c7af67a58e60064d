"""A text as sentences of words: folded, without fillers, each with whether it is denied."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

LONGEST = 4000  # characters that are read: nobody's question is longer
MOST = 200  # words that count
REACH = 3  # words behind a negation that it may be about
_LETTERS = str.maketrans({"μ": "mu", "β": "beta", "’": "'", "‘": "'", "ʼ": "'"})
_END = re.compile(r"[.!?;\n]+(?=\s|$)|\n")
_NOT = re.compile(r"(?<=\w)n't\b", re.IGNORECASE)
_TOKEN = re.compile(r"(\d+(?:[.,]\d+)*(?:e[+-]?\d+)?[kmb]?(?![^\W_])(?:\s*%)?)|([^\W_]+)|([,:])", re.IGNORECASE)
_BREAKS = frozenset({"but", "and", "because", "since", "so", "while", "although", "though", "or", ",", ":"})


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text.

    `text` is folded, `raw` as typed; `denied` counts the words since a negation in its clause, from 1 (0: none);
    `number` says whether it is one.
    """

    text: str
    raw: str
    denied: int = 0
    number: bool = False


def sentences(text: str, fillers: Collection[str], negations: Collection[str]) -> list[tuple[Word, ...]]:
    """Return the sentences of a text as words that count.

    Parameters
    ----------
    text : str
        Whatever was typed; the first `LONGEST` characters and `MOST` words are read.
    fillers : collection of str
        Words that are passed over.
    negations : collection of str
        Words that deny those behind them, up to the end of the clause.
    """
    plain = _NOT.sub(" not", unicodedata.normalize("NFKC", text[:LONGEST]).translate(_LETTERS))
    found: list[tuple[Word, ...]] = []
    left = MOST
    for sentence in _END.split(plain):
        words = tuple(islice(_words(sentence, fillers, negations), left))
        left -= len(words)
        found += [words] if words else []
    return found


def _words(sentence: str, fillers: Collection[str], negations: Collection[str]) -> Iterator[Word]:
    since = 0  # words since a negation, 0 if there is none
    for match in _TOKEN.finditer(sentence):
        raw = re.sub(r"\s+", "", match[0])
        word = raw.casefold()
        if word in _BREAKS:
            since = 0
        if word in negations:
            since = 1
        elif word not in fillers and not match[3]:
            yield Word(word, raw, since, bool(match[1]))
            since = (since + 1) % (REACH + 1) if since else 0
