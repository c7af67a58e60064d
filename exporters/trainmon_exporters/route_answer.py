"""The answer to `trainmon route`: what to answer first, what to read in order, what not to do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rich.console import Console

from trainmon_exporters.page import Page
from trainmon_rules.report import Route
from trainmon_rules.routing import Routed, Topic

LABELS = {"primary": "read", "secondary": "then", "also": "also", "cross-pack": "pack"}
NAME = 60  # of a query's words that are shown


def render_route_json(routed: Routed) -> str:
    """Return the answer as one indented JSON document, schema `trainmon.route/1`."""
    text = json.dumps(routed.as_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def print_routed(routed: Routed, console: Console) -> None:
    """Print the answer: a block a topic."""
    page = Page.on(console)
    if not routed.topics:
        _unknown(page, routed)
    for n, topic in enumerate(routed.topics):
        if n:
            page.blank()
        _topic(page, topic)
    if routed.topics and routed.settings:
        told = ", ".join(f"{k}={_value(v)}" for k, v in routed.settings.items())
        page.blank()
        page.put(page.say("with "), page.say(told, "copy", NAME))


def _topic(page: Page, topic: Topic) -> None:
    heard = f"  (heard: {' '.join(topic.words)})" if topic.words else ""
    page.put(page.say(topic.title, "name"), page.say(heard, "label", NAME))
    if topic.ask:
        page.field("answer", page.say(topic.ask, "first"))
        _lines(page, "go on with", (f'trainmon route "{a}"' for a in topic.answers), "copy")
    _routes(page, topic.routes)
    _lines(page, "not", topic.avoids)
    _lines(page, "to answer", topic.questions)
    if topic.note:
        page.field("note", page.say(topic.note))


def _routes(page: Page, routes: Sequence[Route]) -> None:
    before = ""
    for n, r in enumerate(routes):
        label = "" if LABELS[r.rank] == before else LABELS[r.rank]
        before = LABELS[r.rank]
        name = page.say(f"trainmon explain {r.sheet}", "copy") if n == 0 else page.say(r.sheet, "name")
        page.field(label, name, page.say(f": {r.why}"))


def _lines(page: Page, label: str, texts: Iterable[str], style: str = "") -> None:
    for n, text in enumerate(texts):
        page.field("" if n else label, page.say(text, style))


def _unknown(page: Page, routed: Routed) -> None:
    page.put(page.say("Nothing that the routing table knows is in these words."))
    if routed.closest:
        page.put(page.say("The closest symptoms:"))
        for c in routed.closest:
            page.field("", page.say(f"trainmon explain {c.symptom}", "copy"), page.say(f": {c.title}"))
    page.put(page.say('Say it in other words ("loss spikes", "GPU idle", "which optimizer"), or choose a symptom: '),
             page.say("trainmon explain", "copy"))  # fmt: skip


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
