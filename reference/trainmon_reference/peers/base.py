"""What a peer is: a published rule that reads the series of a run by role and gives alarms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """The points of one series in the order of the log.

    Attributes
    ----------
    step : int64 array, shape (n,)
        Updates made; never falls (what a resumed run trains again is counted on).
    value : float64 array, shape (n,)
        The logged numbers; may hold NaN and infinities.
    time : float64 array, shape (n,)
        Wall time in seconds; NaN where the log has none.
    """

    step: IntArray
    value: FloatArray
    time: FloatArray

    def __len__(self) -> int:
        return len(self.value)

    def each(self) -> Iterator[tuple[int, float]]:
        """Yield step and value of each point."""
        return zip(self.step.tolist(), self.value.tolist(), strict=True)


EMPTY = Points(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


@dataclass(frozen=True, slots=True, eq=False)
class LoggedRun:
    """A run as a peer sees it.

    Attributes
    ----------
    series : mapping of str to Points
        One series a role; a role that isn't logged is not in it.
    total_steps : int
        Updates planned (where the log doesn't tell: made), for rules whose window depends on it.
    parameters : int
        Of the model, for rules that look at the mean gradient; 1 where the log doesn't tell.
    """

    series: Mapping[str, Points] = field(default_factory=dict)
    total_steps: int = 0
    parameters: int = 1

    def of(self, role: str) -> Points:
        """Return the role's series, empty if it isn't logged."""
        return self.series.get(role, EMPTY)


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm of a peer: at which step, and which of our symptoms it may mean."""

    step: int
    means: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Peer(ABC):
    """A published rule; its parameters are the fields, with the published values as defaults.

    Attributes
    ----------
    name, source : str
        What it is called, and where the rule stands.
    reads : tuple of str
        Roles.
    claims : tuple of str
        The symptoms of ours that it claims as its own: what its alarms may mean.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]
    claims: ClassVar[tuple[str, ...]]

    @abstractmethod
    def alarms(self, run: LoggedRun) -> list[Alarm]:
        """Return the alarms on a run, in the order of the log; a rule that ends when it fires gives one."""

    @property
    def parameters(self) -> str:
        """The parameters in words, as `window=30, threshold=3.0`."""
        return ", ".join(f"{f.name}={getattr(self, f.name)}" for f in fields(self))


def mean_and_std(window: Sequence[float]) -> tuple[float, float]:
    """Return mean and population standard deviation; NaN or infinite where a value is, as in the originals."""
    mean = sum(window) / len(window)
    return mean, (sum((x - mean) * (x - mean) for x in window) / len(window)) ** 0.5
