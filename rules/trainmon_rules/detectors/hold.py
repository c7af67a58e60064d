"""`for: N` in a rule: a finding is heard of only if it still holds N reports later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from trainmon_rules.detectors.base import Detector
from trainmon_rules.findings import Finding, FindingKey, State
from trainmon_rules.series import Block


class Held(Detector):
    """Wraps a detector whose rule has a hold; shows it one report at a time, so that chunks don't matter."""

    name: ClassVar[str] = ""

    def __init__(self, inner: Detector) -> None:
        super().__init__(inner.rule, inner.series, inner.peer, inner.settings)
        self.inner = inner
        self.pending: dict[FindingKey, Finding] = {}
        self.said: dict[FindingKey, dict[str, Any]] = {}

    def blind(self) -> str:
        """Return what the inner detector lacks."""
        return self.inner.blind()

    def standing(self) -> Finding | None:
        """Return the inner detector's open finding, if it has been heard of."""
        found = self.inner.standing()
        return None if found is None or found.key not in self.said else found.changed(**self.said[found.key])

    def update(self, block: Block) -> Iterator[Finding]:
        """Yield what has lasted long enough, dated to the report that decided it."""
        for i in range(len(block)):
            self.series.shown = block.start + i + 1
            for found in self.inner.update(block.cut(i, i + 1)):
                if found.key in self.said:
                    yield found.changed(**self.said[found.key])
                elif found.state is State.FIRING:
                    self.pending[found.key] = found
                else:
                    self.pending.pop(found.key, None)
            due = [k for k, f in self.pending.items() if block.start + i >= f.index + self.rule.hold]
            for key in due:
                self.said[key] = {"detected_step": int(block.step[i]), "detected_time": float(block.time[i])}
                yield self.pending.pop(key).changed(**self.said[key])
