"""What to do, in one voice: no two fixes of a report change one setting twice, or in opposite directions.

The fixes of the higher-ranked cause come first and speak for their settings. Over the incidents of a run the earlier
one speaks: what a later one would change in the opposite direction is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trainmon_rules.diagnosis.conditions import compute, fill, holds, names_in
from trainmon_rules.diagnosis.table import FixRule
from trainmon_rules.report import Fix

MAX_FIXES = 8
UP, DOWN, SET = "up", "down", "set"


@dataclass(frozen=True, slots=True)
class Advice:
    """A fix, and for each setting that it is about: up, down, set, or the value that it takes."""

    fix: Fix
    moves: Mapping[str, str]


def advise(rules: Iterable[FixRule], facts: Mapping[str, Any]) -> tuple[Advice, ...]:
    """Return what to do, the best cause's fixes first; a setting is the business of one of them only."""
    out: list[Advice] = []
    said: set[str] = set()
    settled: set[str] = set()
    for rule in rules:
        fix = _fix(rule, facts) if holds(rule.when, facts) else None
        if fix is None or fix.action in said:
            continue
        moves = {key: _direction(key, e, facts) for key, e in rule.change.items()}
        moves |= dict.fromkeys(rule.touches, SET)
        if settled.isdisjoint(moves):
            out.append(Advice(fix, moves))
            said.add(fix.action)
            settled |= set(moves)
    return tuple(out[:MAX_FIXES])


def in_one_voice(incidents: Iterable[tuple[Advice, ...]]) -> list[tuple[Advice, ...]]:
    """Return the advice of a run's incidents without what contradicts that of an earlier one."""
    taken: dict[str, str] = {}
    out = []
    for advice in incidents:
        kept = tuple(a for a in advice if not any(_opposite(taken.get(k), move) for k, move in a.moves.items()))
        for a in kept:
            taken = {**a.moves, **taken}
        out.append(kept)
    return out


def _fix(rule: FixRule, facts: Mapping[str, Any]) -> Fix | None:
    numbers = {name: compute(expression, facts) for name, expression in rule.numbers.items()}
    action = fill(rule.action, {**facts, **numbers})
    if action is None:
        action = rule.plain
    change = {key: value for key, e in rule.change.items() if (value := compute(e, facts)) is not None}
    return None if action is None else Fix(action, rule.sheet, change or None)


def _direction(key: str, expression: Any, facts: Mapping[str, Any]) -> str:
    """Return which way a change moves a setting, also where the log doesn't hold its value."""
    used = names_in(expression)
    value = compute(expression, {**dict.fromkeys(used, 1.0), **facts})
    old = facts.get(key, 1.0 if key in used else None)
    numbers = [v for v in (old, value) if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) < 2:
        return SET if value is None else str(value)
    return UP if value > old else DOWN if value < old else str(value)


def _opposite(one: str | None, other: str) -> bool:
    if one is None or one == other or SET in (one, other):
        return False
    return {one, other} == {UP, DOWN} or not {one, other} & {UP, DOWN}
