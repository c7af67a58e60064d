"""Everything that can go wrong on purpose, as a tree.

TrainmonError
├── BadConfig      a config, rule, role or routing file that can't be used; names file, key and line
├── BadInput       a path or source that can't be read at all; names the path and what to do
└── BadOutput      a file that can't be written; names it and why
"""

from __future__ import annotations


class TrainmonError(Exception):
    """Base of all errors that trainmon raises on purpose; its text is one line for a person."""


class BadConfig(TrainmonError):
    """A config, rule, role or routing file that can't be used. Commands end with status 2.

    Its text is the first problem; `problems` has all that were found, a line each.
    """

    def __init__(self, problem: str, *more: str) -> None:
        super().__init__(problem, *more)
        self.problems = (problem, *more)

    def __str__(self) -> str:
        first, *more = self.problems
        return first if not more else f"{first} (and {len(more)} more)"


class BadInput(TrainmonError):
    """A path or source that can't be read. The other paths go on; the command ends with status 2."""

    def __init__(self, source: str, error: str, offset: int | None = None) -> None:
        super().__init__(f"{source}: {error}")
        self.source = source
        self.error = error
        self.offset = offset


class BadOutput(TrainmonError):
    """A file that can't be written. Commands end with status 2."""

    def __init__(self, path: str, error: str) -> None:
        super().__init__(f"{path}: can't be written: {error}")
