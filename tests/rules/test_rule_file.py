"""A user's rule file: what it changes, and what is refused, with file, line and the closest name."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import engine, streams
from trainmon_rules.detectors import DETECTORS
from trainmon_rules.errors import BadConfig
from trainmon_rules.findings import Severity
from trainmon_rules.rulebook import changes_of, parameters_of, rule_facts
from trainmon_rules.rules import FAMILIES, SYMPTOMS, amended, load_rules, read_rule_file, rule_entries
from trainmon_rules.state import Settings

SHIPPED = Settings.default()
ROLES = SHIPPED.roles.roles
PLACE = rule_entries("- x", "f")[0][1]
RANGE = " must be above 0 and at most 1,000,000, not "
OWN = (
    "- {rule: my-nan, detector: nonfinite, roles: [reward], symptom: nonfinite, severity: critical, "
    "family: instability}\n"
)


def settings(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return SHIPPED.judged_by(amended(SHIPPED.rules, read_rule_file(path, "mine.yaml"), ROLES, user=True))


def refused(tmp_path, text):
    with pytest.raises(BadConfig) as caught:
        settings(tmp_path, text)
    assert all("\n" not in p and len(p) < 1500 for p in caught.value.problems)
    return list(caught.value.problems)


def named(found, name):
    return next(r for r in found.rules if r.name == name)


# ---------------------------------------------------------------------- what it changes
def test_an_entry_changes_only_the_keys_it_gives(tmp_path):
    found = settings(tmp_path, "- rule: grad-spike\n  for: 2\n  parameters: {ratio: 5}\n")
    old, new = named(SHIPPED, "grad-spike"), named(found, "grad-spike")
    assert changes_of(new) == {"for": (0, 2), "parameters.ratio": (3.0, 5)}
    assert (new.severity, new.fixed, new.origin) == (old.severity, False, "mine.yaml")
    assert [r for r in found.rules if r.name != "grad-spike"] == [r for r in SHIPPED.rules if r.name != "grad-spike"]


def test_roles_companions_and_needs_are_replaced(tmp_path):
    text = "- rule: loss-spike\n  roles: [val_loss]\n  companions: []\n  needs: [learning_rate]\n"
    rule = named(settings(tmp_path, text), "loss-spike")
    assert (rule.roles, rule.companions, rule.needs) == (("val_loss",), (), ("learning_rate",))


def test_a_disabled_rule_is_off_and_may_be_taken_back(tmp_path):
    off = settings(tmp_path, "- {rule: plateau, enabled: false}\n")
    assert "plateau" not in {r.name for r in off.rules}
    assert [r.name for r in off.off] == ["plateau"]
    back = amended((*off.rules, *off.off), rule_entries("- {rule: plateau, enabled: true}", "b.yaml"), ROLES, user=True)
    assert all(r.enabled for r in back)


def test_a_rule_of_ones_own_finds_what_no_shipped_rule_judges(tmp_path):
    columns = {"reward": [float(i % 7) for i in range(60)] + [math.nan] * 20, "lr": [1e-3] * 80}
    assert engine.incidents(columns) == []
    [incident] = engine.incidents(columns, settings=settings(tmp_path, OWN))
    assert (incident.lead.rule, incident.symptom, incident.severity) == ("my-nan", "nonfinite", Severity.CRITICAL)


def test_a_changed_severity_and_parameter_are_what_the_engine_goes_by(tmp_path):
    columns = streams.spike()
    assert [i.severity for i in engine.incidents(columns)] == [Severity.WARNING]
    quiet = settings(tmp_path, "- {rule: loss-spike, severity: info}\n")
    assert [i.severity for i in engine.incidents(columns, settings=quiet)] == [Severity.INFO]
    deaf = settings(tmp_path, "- {rule: loss-spike, enabled: false}\n")
    assert engine.incidents(columns, settings=deaf) == []


def test_an_empty_file_changes_nothing(tmp_path):
    for text in ("", "# nothing yet\n", "[]\n"):
        assert settings(tmp_path, text).rules == SHIPPED.rules


def test_the_list_tells_what_a_file_changed(tmp_path):
    text = OWN + "- {rule: plateau, enabled: false}\n- rule: grad-spike\n  severity: info\n"
    facts = {r.rule: r for r in rule_facts(settings(tmp_path, text))}
    assert (facts["my-nan"].shipped, facts["my-nan"].file, facts["my-nan"].changed) == (False, "mine.yaml", {})
    assert (facts["plateau"].enabled, facts["plateau"].changed) == (False, {"enabled": (True, False)})
    assert facts["grad-spike"].changed == {"severity": ("warning", "info")}
    assert facts["nonfinite"].file is None
    for rule in SHIPPED.rules:
        assert facts[rule.name].parameters == parameters_of(rule)


# ---------------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- rule: platau\n  for: 1\n", "1: platau: unknown rule 'platau'; did you mean 'plateau'?"),
        ("- rule: xyzzy\n", "1: xyzzy: unknown rule 'xyzzy'; known: activation-scale, "),
        ("- rule: flat\n  sevrity: info\n", "2: flat.sevrity: unknown key 'sevrity'; did you mean 'severity'?"),
        ("- rule: flat\n  7: info\n", "2: flat.7: unknown key 7; known: "),
        ("- rule: flat\n  severity: 3\n", "2: flat.severity: unknown severity 3; known: critical, info, warning"),
        ("- rule: flat\n  severity:\n", "2: flat.severity: unknown severity None; known: "),
        ("- rule: flat\n  for: -1\n", "2: flat.for: must be a number of reports, not -1"),
        ("- rule: flat\n  for: true\n", "2: flat.for: must be a number of reports, not True"),
        ("- rule: flat\n  for: 1.5\n", "2: flat.for: must be a number of reports, not 1.5"),
        ("- rule: flat\n  enabled: no\n", "2: flat.enabled: must be true or false, not 'no'"),
        ("- rule: flat\n  roles: train_loss\n", "2: flat.roles: must be a list of roles, [train_loss], not 'tr"),
        ("- rule: flat\n  roles: []\n", "2: flat.roles: must be a list of roles, [train_loss], not []"),
        ("- rule: flat\n  roles:\n  - train_loss\n  - trian_loss\n", "4: flat.roles: unknown role 'trian_loss'; did"),
        ("- rule: flat\n  roles: [[train_loss]]\n", "2: flat.roles: unknown role ['train_loss']; known: "),
        ("- rule: flat\n  needs: [1]\n", "2: flat.needs: unknown role 1; "),
        ("- rule: flat\n  symptom: flatt\n", "2: flat.symptom: unknown symptom 'flatt'; did you mean 'flat'?"),
        ("- rule: flat\n  family: lerning\n", "2: flat.family: unknown family 'lerning'; did you mean 'learning'?"),
        ("- rule: flat\n  detector: plateau\n", "2: flat.detector: flat has the detector 'flat'; for another one"),
        ("- rule: flat\n  parameters: 1\n", "2: flat.parameters: must be a table of names and values, not 1"),
        ("- rule: flat\n  parameters:\n    gian: 1\n", "3: flat.parameters.gian: unknown parameter 'gian'; did you"),
        ("- rule: flat\n  parameters: {gain: .nan}\n", "2: flat.parameters.gain:" + RANGE + "nan"),
        ("- rule: flat\n  parameters: {gain: .inf}\n", "2: flat.parameters.gain:" + RANGE + "inf"),
        ("- rule: flat\n  parameters: {gain: -0.1}\n", "2: flat.parameters.gain:" + RANGE + "-0.1"),
        ("- rule: flat\n  parameters: {ties: 0}\n", "2: flat.parameters.ties:" + RANGE + "0"),
        ("- rule: flat\n  parameters: {ties: 1.5}\n", "2: flat.parameters.ties: must be a whole number, not 1.5"),
        ("- rule: flat\n  parameters: {gain: '1'}\n", "2: flat.parameters.gain: must be a number, not '1'"),
        ("- rule: flat\n\n- rule: flat\n", "3: flat: two rules are called 'flat'"),
        ("- detector: flat\n", "1: the key 'rule' is missing"),
        ("- rule: My rule\n", "1: a rule's name is lower-case letters and digits with -, not 'My rule'"),
        ("- rule: [flat]\n", "1: a rule's name is lower-case letters and digits with -, not ['flat']"),
        ("- flat\n", "1: a rule is a mapping that begins with rule: NAME"),
        ("rules:\n- rule: flat\n", " a rule file is a list of rules, each beginning with - rule: NAME"),
        ("flat\n", " a rule file is a list of rules, each beginning with - rule: NAME"),
        ("- rule: flat\n  rule: plateau\n", '2: not valid YAML: found duplicate key "rule"'),
        ("- rule: flat\n for: 1\n", "2: not valid YAML: "),
        ("- rule: flat\n---\n- rule: plateau\n", "2: not valid YAML: "),
        ("- rule: flat\n  for: " + "9" * 5000, "2: a number of more than 300 digits"),
        ("- rule: flat\n  for: 2026-99-99\n", " not valid YAML: month must be in 1..12"),
        ("- !!python/object:os.system x\n", "1: tags ("),
        ("- &a {rule: flat}\n- *a\n", "1: anchors (&a) aren't taken here; write it out"),
        ("- &a [*a]\n", "1: anchors (&a) aren't taken here; write it out"),
        ("[" * 5000 + "]" * 5000, "1: nested deeper than 20 levels"),
        ("\n".join("  " * i + "a:" for i in range(2000))[:60_000], ": nested deeper than 20 levels"),
        ("- " * 3000 + "a\n", "1: nested deeper than 20 levels"),
        (b"\x00\x01\x02\xff\xfe", " not UTF-8 at byte 3"),
        (b"- rule: flat\0\n", " not valid YAML: unacceptable character #x0000"),
        ("- rule: flat\n" + "#" * 70_000, " larger than 65536 bytes, that is no rule file"),
        ("- 1\n" * 600, " holds 600 rules; 500 at most"),
    ],
)  # fmt: skip
def test_what_can_not_be_is_refused_in_one_line(tmp_path, text, problem):
    [said] = refused(tmp_path, text)
    assert said.startswith("mine.yaml:")
    assert problem in said


def test_a_merge_that_would_fill_the_memory_is_refused(tmp_path):
    lines = ["- x0: &x0 {rule: flat}"]
    lines += [f"  x{i}: &x{i} {{<<: [{', '.join([f'*x{i - 1}'] * 20)}]}}" for i in range(1, 30)]
    assert "anchors (&x0) aren't taken here" in refused(tmp_path, "\n".join(lines))[0]


def test_a_missing_file_a_folder_and_a_device_are_no_rule_files(tmp_path):
    for path, what in (("none", "no such file"), (".", "is no regular file"), ("/dev/zero", "is no regular file")):
        with pytest.raises(BadConfig, match=f"x: {what}"):
            read_rule_file(tmp_path / path, "x")


def test_all_problems_of_a_file_are_told_at_once_and_none_twice(tmp_path):
    text = (
        "- rule: grad-spike\n  severity: loud\n  parameters: {ration: 3, early: 0}\n"
        "- rule: my-rule\n  detector: flat\n  symptom: flat\n- rule: plateu\n"
    )
    said = refused(tmp_path, text)
    assert [s.split(": ")[1] for s in said] == [
        "grad-spike.severity", "grad-spike.parameters.ration", "grad-spike.parameters.early",
        "my-rule", "my-rule", "my-rule", "plateu",
    ]  # fmt: skip
    assert [s.split(":")[1] for s in said] == ["2", "3", "3", "4", "4", "4", "7"]
    assert "the key 'roles' is missing" in said[3]


def test_of_a_file_with_faults_in_every_line_a_hundred_are_told_soon(tmp_path):
    assert len(refused(tmp_path, "".join(f"- {{rule: x{i}, a: 1, b: 2}}\n" for i in range(400)))) == 100


def test_a_shipped_rule_file_passes_the_same_checks_by_the_same_way():
    assert tuple(load_rules(ROLES)) == SHIPPED.rules
    with pytest.raises(BadConfig, match=r"rules\.yaml:1: flat\.symptom: unknown symptom"):
        amended((), rule_entries("- {rule: flat, detector: flat, symptom: x}", "rules.yaml"), ROLES)


def test_no_default_is_out_of_the_range_that_users_are_held_to():
    for detector in DETECTORS.values():
        entry = {
            "rule": "x", "detector": detector.name, "roles": ["train_loss"], "symptom": "flat", "severity": "info",
            "family": "learning", "parameters": detector.parameters(),
        }  # fmt: skip
        assert amended((), [(entry, PLACE)], ROLES)


# ---------------------------------------------------------------------- anything at all
WORDS = st.sampled_from(
    ["rule", "flat", "severity", "info", "for", "parameters", "gain", "roles", "train_loss", "enabled"]
)
SCALARS = st.one_of(WORDS, st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
ANYTHING = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SCALARS, inner, max_size=4), max_leaves=12
)


@given(st.lists(st.dictionaries(WORDS, ANYTHING, max_size=5) | ANYTHING, max_size=4))
def test_whatever_stands_in_a_file_is_taken_or_refused(entries):
    try:
        rules = amended(SHIPPED.rules, [(e, PLACE) for e in entries], ROLES, user=True)
    except BadConfig as error:
        assert all(p.startswith("f:1: ") and "\n" not in p for p in error.problems)
    else:
        assert len(rules) >= len(SHIPPED.rules)


@given(st.binary(max_size=200) | st.text("- :{}[]&*!|>'\"\n\tarule0.#%@", max_size=60).map(str.encode))
def test_whatever_bytes_a_file_has_it_is_taken_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(data)
    try:
        entries = read_rule_file(path, "any.yaml")
    except BadConfig as error:
        assert str(error).startswith("any.yaml")
    else:
        assert isinstance(entries, list)


def own_rules():
    """Rules that a user could add: any detector on any role, its numbers anywhere between nothing and the limit."""
    number = st.sampled_from([1e-300, 1e-6, 0.5, 1.0, 3.0, 1e3, 1e6])

    def values(name):
        kinds = {float: number, int: number.map(lambda v: max(1, int(v))), bool: st.booleans()}
        return st.fixed_dictionaries({}, optional={k: kinds[type(v)] for k, v in DETECTORS[name].parameters().items()})

    def rule(name):
        return st.fixed_dictionaries({
            "rule": st.just("own"), "detector": st.just(name), "parameters": values(name),
            "roles": st.lists(st.sampled_from(["train_loss", "val_loss", "grad_norm", "learning_rate", "loss_scale"]),
                              min_size=1, max_size=3),
            "symptom": st.sampled_from(SYMPTOMS), "severity": st.sampled_from(["info", "warning", "critical"]),
            "family": st.sampled_from(FAMILIES), "for": st.sampled_from([0, 1, 20]),
        })  # fmt: skip

    return st.sampled_from(sorted(DETECTORS)).flatmap(rule)


def every_role(seed):
    """A run with a tag of each role, on a scale of its own, that grows, jumps and has gaps and awkward numbers."""
    rng = np.random.default_rng(seed)
    columns = {"when": "time", **{f"tag of {role}": role for role in ROLES}}
    scales = 10.0 ** rng.integers(-3, 6, len(columns))
    values = {
        tag: scale * (1 + 0.004 * np.arange(300) + 3 * (np.arange(300) > 200) + rng.normal(0, 0.05, 300))
        for tag, scale in zip(columns, scales, strict=True)
    }
    for column in values.values():
        column[rng.integers(0, 300, 6)] = [np.nan, np.inf, -np.inf, 0.0, 1e300, -1e300]
    return columns, values


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("detector", DETECTORS)
def test_no_role_that_a_rule_may_list_stops_the_engine(detector, seed):
    roles, values = every_role(seed)
    shipped = next(r for r in SHIPPED.rules if r.detector == detector)
    rule = replace(shipped, roles=tuple(ROLES), needs=())
    settings = Settings.default(roles=roles).judged_by([rule])
    done = engine.session(values, time=1e9 + 30.0 * np.arange(300), settings=settings)
    assert len(done.runs[0].attempts[0].tracked) == len(roles)


@pytest.mark.slow
@given(own_rules(), st.sampled_from(sorted(streams.AILING)))
def test_no_rule_that_is_taken_stops_the_engine(entry, run):
    rules = amended(SHIPPED.rules, [(entry, PLACE)], ROLES, user=True)
    assert engine.session(streams.AILING[run](), settings=SHIPPED.judged_by(rules)).runs
