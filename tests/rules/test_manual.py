"""The manual: a page for every name that a report can show."""

import re

import pytest

from trainmon_rules.detectors import DETECTORS
from trainmon_rules.diagnosis.knowledge import sheet_text
from trainmon_rules.diagnosis.manual import KINDS, explain, names
from trainmon_rules.errors import BadConfig
from trainmon_rules.state import Settings

RULES = Settings.default().rules
KNOWN = names(RULES)


@pytest.mark.parametrize(("kind", "name"), [(k, n) for k in KINDS for n in KNOWN[k]])
def test_every_name_has_a_page(kind, name):
    text = explain(name, RULES)
    assert text.startswith("# ")
    assert text.endswith("\n")
    assert len(text) > 150
    assert not re.search(r"\{\w+\}|<\w+ \w+| at 0x", text)  # neither a blank left open nor Python's own words
    if kind == "sheet":
        assert text == sheet_text(name).strip() + "\n"


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_a_rule_tells_its_parameters_roles_and_severity(rule):
    page = explain(rule.name, RULES)
    own = page[page.index(f"# Rule {rule.name}") :]
    for name, value in {**DETECTORS[rule.detector].parameters(), **dict(rule.parameters)}.items():
        assert f"- `{name}`: {value}" in own
    for role in rule.roles:
        assert f"`{role}`" in own
    assert f"severity: {rule.severity}" in own
    assert "**When it is wrong:**" in own


def test_a_symptom_comes_before_the_rule_of_its_name():
    page = explain("nonfinite", RULES)
    assert page.index("# Symptom nonfinite") < page.index("# Rule nonfinite")
    assert "Found by: `nonfinite`." in page
    assert "**gradient explosion**: gradients grew" in page


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("gradient", "# Gradient management"),
        ("batch-size", "# Batch size"),
        ("Gradient Explosion", "# Cause gradient-explosion"),
        ("grad_spike", "# Symptom grad-spike"),
        ("gradient-management.md", "# Gradient management"),
        ("deep-rl", "# deep-rl"),
    ],
)
def test_names_are_found_as_people_type_them(asked, title):
    assert explain(asked, RULES).startswith(title)


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("gradient-managment", "did you mean gradient-management"),
        ("divergance", "did you mean divergence"),
        ("xyzzy", "trainmon explain lists all names"),
        ("", "trainmon explain lists all names"),
    ],
)
def test_an_unknown_name_is_told_with_the_closest(asked, hint):
    with pytest.raises(BadConfig, match=f"nothing is called {asked!r}; {hint}"):
        explain(asked, RULES)
