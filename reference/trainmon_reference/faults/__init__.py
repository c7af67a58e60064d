"""What can go wrong, by name. A scenario lists faults as `{kind: NAME, step: N, …}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmon_reference.faults.base import Fault
from trainmon_reference.faults.rates import RateFactor
from trainmon_rules.errors import BadConfig

KINDS: Mapping[str, type[Fault]] = {"rate-factor": RateFactor}


def build_fault(entry: Mapping[str, Any]) -> Fault:
    """Return the fault that a scenario's entry describes; BadConfig if there is none of that kind."""
    parameters = dict(entry)
    kind = parameters.pop("kind", "")
    if kind not in KINDS:
        raise BadConfig(f"fault: unknown kind {kind!r}; known: {', '.join(KINDS)}")
    try:
        return KINDS[kind](**parameters)
    except TypeError as error:
        raise BadConfig(f"fault {kind}: {error}") from None
