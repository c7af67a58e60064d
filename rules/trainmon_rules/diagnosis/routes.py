"""Routes put together: each sheet once, by rank, one of them primary, none of the table's mistakes among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainmon_rules.diagnosis.conditions import holds
from trainmon_rules.diagnosis.entries import RANKS
from trainmon_rules.diagnosis.table import Mistake
from trainmon_rules.report import Route


def settled(routes: Iterable[Route]) -> list[Route]:
    """Return routes as a report lists them: each sheet once, by rank, exactly one primary."""
    return ordered(merged([], routes))


def merged(routes: list[Route], more: Iterable[Route]) -> list[Route]:
    """Add routes; a sheet that is there already keeps its place and takes the stronger rank."""
    out = list(routes)
    for route in more:
        at = next((i for i, r in enumerate(out) if r.sheet == route.sheet), None)
        if at is None:
            out.append(route)
        elif RANKS.index(route.rank) < RANKS.index(out[at].rank):
            out[at] = replace(out[at], rank=route.rank)
    return out


def demoted(route: Route, rank: str) -> Route:
    """Return the route with at most that rank; another pack below primary is always cross-pack."""
    if route.pack is not None:
        return replace(route, rank="cross-pack")
    return route if RANKS.index(route.rank) >= RANKS.index(rank) else replace(route, rank=rank)


def ordered(routes: list[Route]) -> list[Route]:
    """Sort by rank, the table's order within; exactly one is primary."""
    by_rank = sorted(routes, key=lambda r: RANKS.index(r.rank))
    first, rest = by_rank[:1], by_rank[1:]
    return [replace(r, rank="primary") for r in first] + [demoted(r, "secondary") for r in rest]


def applies(mistake: Mistake, facts: Mapping[str, Any]) -> bool:
    """Return whether a row of the mistakes' table is about this incident."""
    seen = set(facts.get("symptoms", ()))
    return bool(mistake.wrong) and bool(seen.intersection(mistake.symptoms)) and holds(mistake.when, facts)


def put_all_right(mistakes: Sequence[Mistake], routes: list[Route]) -> list[Route]:
    """Return the routes without any of the mistakes, as what puts one right may be the wrong one of another."""
    for _ in mistakes:
        for mistake in mistakes:
            routes = put_right(mistake, routes)
    return routes


def put_right(mistake: Mistake, routes: list[Route]) -> list[Route]:
    """Return the routes without the mistake: the wrong one not primary, or not alone."""
    listed = ordered(routes)
    if mistake.how == "alone":
        others = [r for r in listed if r.sheet != mistake.wrong]
        return listed if others else merged(list(mistake.correct), listed)
    if not listed or listed[0].sheet != mistake.wrong:
        return listed
    wrong = demoted(listed[0], "secondary")
    return [*merged(list(mistake.correct), listed[1:]), wrong]
