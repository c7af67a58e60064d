"""The small language of the knowledge files: conditions over facts, computed values, sentences with numbers.

A condition is a mapping of fact names to tests that must all hold: `{grad_led: true, precision: fp16}`,
`{dataset_size: {at_least: 1000, below: 10000}}`, `{precision: {one_of: [fp16, fp8]}}`, `{symptoms: {has: flat}}`,
`{learning_rate: known}`, `{has_validation: unknown}`. A fact that isn't known fails every test but `unknown`.

An expression is a number, a fact's name, or one operation: `{times: [learning_rate, 0.333]}`, `{over: [a, b]}`,
`{plus: [a, b]}`, `{minus: [a, b]}`, `{least: […]}`, `{most: […]}`, `{whole: x}`, `{value: anything}`. It is None
when a fact is missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from trainmon_rules.errors import BadConfig
from trainmon_rules.rules import known as refuse
from trainmon_rules.words import short

Facts = Mapping[str, Any]
_PLACE = re.compile(r"\{([a-z_0-9]+)\}")
_ONE = re.compile(r"(?<![\d.,])1 (report|fall|time|step|example|evaluation|epoch)s\b")


def known(value: object, options: Collection[str], what: str, where: str) -> str:
    """Return `value` if it is one of `options`; else BadConfig with the closest of them."""
    if isinstance(value, str) and value in options:  # the quick way: thousands of names are checked at a load
        return value
    return refuse(value, options, what, where)


def _numbers(test: Callable[[float, float], bool]) -> Callable[[Any, Any], bool]:
    def compare(fact: Any, limit: Any) -> bool:
        ok = isinstance(fact, int | float) and not isinstance(fact, bool) and isinstance(limit, int | float)
        return ok and test(float(fact), float(limit))

    return compare


TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "at_least": _numbers(lambda a, b: a >= b),
    "at_most": _numbers(lambda a, b: a <= b),
    "above": _numbers(lambda a, b: a > b),
    "below": _numbers(lambda a, b: a < b),
    "one_of": lambda a, b: a in b,
    "not": lambda a, b: bool(a != b),
    "has": lambda a, b: isinstance(a, Sequence) and b in a,
}


def holds(condition: Mapping[str, Any], facts: Facts) -> bool:
    """Return whether every test of the condition holds."""
    return all(_one(test, facts.get(name)) for name, test in condition.items())


def _one(test: Any, fact: Any) -> bool:
    if isinstance(test, str) and test in ("known", "unknown"):
        return (fact is not None) == (test == "known")
    if fact is None:
        return False
    if isinstance(test, Mapping):
        return all(TESTS[op](fact, limit) for op, limit in test.items())
    return bool(fact == test and isinstance(fact, bool) == isinstance(test, bool))


def check_condition(condition: Any, names: Collection[str], where: str) -> dict[str, Any]:
    """Return a condition from a file; BadConfig for unknown facts and tests."""
    if not isinstance(condition, Mapping):
        raise BadConfig(f"{where}: a condition is a mapping of facts to tests, not {condition!r}")
    for name, test in condition.items():
        known(name, names, "fact", where)
        if isinstance(test, Mapping):
            for op, limit in test.items():
                known(op, TESTS, "test", f"{where}: {name}")
                if op == "one_of" and not isinstance(limit, list):
                    raise BadConfig(f"{where}: {name}: one_of needs a list")
                if op in ("at_least", "at_most", "above", "below") and not isinstance(limit, int | float):
                    raise BadConfig(f"{where}: {name}: {op} needs a number, not {limit!r}")
    return dict(condition)


_OPS: dict[str, Callable[[list[float]], float | None]] = {
    "times": math.prod,
    "over": lambda v: v[0] / v[1] if v[1] else None,
    "plus": math.fsum,
    "minus": lambda v: v[0] - v[1],
    "least": min,
    "most": max,
    "whole": lambda v: float(round(v[0])),
}


def compute(expression: Any, facts: Facts) -> Any:
    """Return an expression's value, None where a fact is missing; numbers to three significant digits."""
    if isinstance(expression, Mapping) and "value" in expression:
        return expression["value"]
    number = _evaluate(expression, facts)
    if number is None or not math.isfinite(number):
        return None
    if isinstance(expression, Mapping) and "whole" in expression:
        return int(number)
    return float(f"{number:.3g}")


def _evaluate(expression: Any, facts: Facts) -> float | None:
    if isinstance(expression, Mapping):
        op, args = next(iter(expression.items()))
        values = [_evaluate(a, facts) for a in (args if isinstance(args, list) else [args])]
        present = [v for v in values if v is not None]
        return _OPS[op](present) if len(present) == len(values) else None
    value = facts.get(expression) if isinstance(expression, str) else expression
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def check_expression(expression: Any, names: Collection[str], where: str) -> Any:
    """Return an expression from a file; BadConfig for unknown operations and facts."""
    if isinstance(expression, Mapping):
        if len(expression) != 1:
            raise BadConfig(f"{where}: an expression has one operation, not {sorted(expression)}")
        op, args = next(iter(expression.items()))
        if op == "value":
            return expression
        known(op, _OPS, "operation", where)
        for a in args if isinstance(args, list) else [args]:
            check_expression(a, names, where)
        if op in ("over", "minus") and (not isinstance(args, list) or len(args) != 2):
            raise BadConfig(f"{where}: {op} needs a list of two")
        return expression
    if isinstance(expression, str):
        known(expression, names, "fact", where)
    elif isinstance(expression, bool) or not isinstance(expression, int | float):
        raise BadConfig(f"{where}: {expression!r} is no expression; write {{value: …}} for a fixed value")
    return expression


def names_in(expression: Any) -> set[str]:
    """Return the facts that an expression uses."""
    if isinstance(expression, Mapping):
        if "value" in expression:
            return set()
        args = [a for v in expression.values() for a in (v if isinstance(v, list) else [v])]
        return {n for a in args for n in names_in(a)}
    return {expression} if isinstance(expression, str) else set()


def places(sentence: str) -> tuple[str, ...]:
    """Return the names between braces in a sentence."""
    return tuple(_PLACE.findall(sentence))


def fill(sentence: str, facts: Facts) -> str | None:
    """Return the sentence with its {facts} filled in (and "1 reports" put right), None if one isn't known."""
    if any(facts.get(name) is None for name in places(sentence)):
        return None
    return _ONE.sub(r"1 \1", _PLACE.sub(lambda m: show(facts[m[1]]), sentence))


def show(value: Any) -> str:
    """Return a fact as a person reads it: up to three significant digits, counts whole."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and 1000 <= abs(value) < 1e9 else short(value, 3)
    if isinstance(value, int):
        return str(value)
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
