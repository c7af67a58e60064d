"""Text that every Python ships: the language reference as its `help()` shows it."""

from __future__ import annotations

import functools
from pydoc_data.topics import topics

import torch
from torch import Tensor

LENGTH = 200_000  # characters


@functools.cache
def corpus() -> str:
    """Return the first characters of the help topics, ASCII only. Another Python may have another wording."""
    text = "\n".join(topics[name] for name in sorted(topics))
    return "".join(character for character in text if character.isascii())[:LENGTH]


@functools.cache
def alphabet() -> str:
    """Return the characters that occur, in order; a character's place is its number."""
    return "".join(sorted(set(corpus())))


def windows(length: int) -> Tensor:
    """Return the text cut into pieces, as numbers of characters: int64 tensor, shape (pieces, length)."""
    numbers = {character: number for number, character in enumerate(alphabet())}
    ids = torch.tensor([numbers[character] for character in corpus()])
    return ids[: len(ids) // length * length].view(-1, length)
