"""`rules.md`: what each rule detects, when it is wrong, its parameters."""

from __future__ import annotations

import inspect
import re
import sys

from docs.generate.markup import NOTE, codes, table
from trainmon_rules.detectors import DETECTORS, Detector, Rule
from trainmon_rules.state import Settings

PARTS = ("What it detects", "Why it matters", "Example", "When it is wrong", "Fixes", "Source")


def page() -> str:
    """Return rules.md."""
    shipped = Settings.default().rules
    intro = (
        "A rule is a detector (a statistical test) with its parameters, the roles that it judges, and what a finding "
        "means. What a role is: [roles.md](roles.md); what a symptom leads to: [symptoms.md](symptoms.md); how to "
        "change or disable a rule: [config.md](config.md).\n\n"
        "Thresholds are relative to a run's own past. A *report* is one logged point of the series. The *baseline* is "
        "the median and the spread (MAD) of the last 64 reports about a line, without those that were flagged. "
        "Unless a rule says otherwise, findings have the severity shown; some grade their own."
    )
    rows = ((f"[{r.name}](#{r.name})", _symptom(r.symptom), str(r.severity), codes(r.roles)) for r in shipped)
    heads = table(("rule", "symptom", "severity", "judges"), rows)
    return "\n\n".join([NOTE, "# The rules", intro, heads, *map(_rule, shipped)]) + "\n"


def paragraphs(rule: Rule) -> list[str]:
    """Return the text of a rule's detector, a line a paragraph."""
    text = inspect.getdoc(sys.modules[DETECTORS[rule.detector].__module__]) or ""
    return [re.sub(r"\s*\n\s*", " ", p) for p in text.split("\n\n")]


def part(rule: Rule, name: str) -> str:
    """Return one of the six parts of that text, "" if it lacks it."""
    return next((p.removeprefix(f"{name}:").strip() for p in paragraphs(rule) if p.startswith(f"{name}:")), "")


def _rule(rule: Rule) -> str:
    detector = DETECTORS[rule.detector]
    facts = [
        f"- symptom: {_symptom(rule.symptom)}; severity: {rule.severity}; family: {rule.family}",
        f"- judges: {codes(rule.roles)}",
        f"- reads beside them, where logged: {codes(rule.companions)}" if rule.companions else "",
        f"- is blind without: {codes(rule.needs)}" if rule.needs else "",
        f"- speaks after {rule.hold} further reports" if rule.hold else "",
    ]
    head, *rest = paragraphs(rule)
    said = [re.sub(rf"^({'|'.join(PARTS)}):", r"**\1:**", p) for p in rest]
    if detector.name not in head.partition(":")[0]:  # a variant that shares another one's module
        said.insert(0, (detector.__doc__ or "").partition("\n")[0])
    return "\n\n".join([f"## {rule.name}", "\n".join(filter(None, facts)), *said, _parameters(rule, detector)])


def _parameters(rule: Rule, detector: type[Detector]) -> str:
    values = {**detector.parameters(), **dict(rule.parameters)}
    doc = re.sub(r"\s*\n\s*", " ", inspect.getdoc(detector.Params) or "")
    return f"Parameters: {doc}\n\n" + table(("name", "value"), ((f"`{k}`", f"`{v}`") for k, v in values.items()))


def _symptom(name: str) -> str:
    return f"[{name}](symptoms/{name}.md)"
