"""The knowledge files: everything of the routing table is there, every reference holds, bad data is refused."""

import copy
import re
from collections import Counter

import pytest

from trainmon_rules.diagnosis import Knowledge
from trainmon_rules.diagnosis.conditions import compute, fill, holds
from trainmon_rules.diagnosis.factnames import DERIVED, fact_names
from trainmon_rules.diagnosis.knowledge import load_table, parse_table, sheet_text, shipped_table
from trainmon_rules.diagnosis.rates import usual_rate, usual_rates
from trainmon_rules.errors import BadConfig
from trainmon_rules.rules import SYMPTOMS
from trainmon_rules.vocabulary import parse_vocabulary, read_settings, vocabulary
from trainmon_rules.yamlfile import load_packaged

PARTS = {
    "sections": 7,
    "loss_behaviour": 5,
    "gpu_utilization": 5,
    "dataset_size": 4,
    "direct_questions": 10,
    "modern_triggers": 7,
    "scenarios": 6,
    "boundaries": 9,
    "mistakes": 11,
}
SHEETS = {
    "optimization-algorithms",
    "learning-rate-scheduling",
    "gradient-management",
    "batch-size-and-memory-tradeoffs",
    "loss-functions-and-objectives",
    "overfitting-prevention",
    "data-augmentation-strategies",
    "hyperparameter-tuning",
    "training-loop-architecture",
    "experiment-tracking",
}
PACKS = {"pytorch-engineering", "llm-specialist", "ml-production", "neural-architectures", "deep-rl"}


@pytest.fixture
def files():
    return [copy.deepcopy(load_packaged(f"{name}.yaml")) for name in ("routing", "causes", "symptoms")]


def refused(files):
    with pytest.raises(BadConfig) as caught:
        parse_table(*files)
    return str(caught.value)


# ----------------------------------------------------------------------------------------- what is in it
@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_the_table_is_there(part):
    assert len(shipped_table().part(part)) == PARTS[part]


def test_the_rest_of_the_table_is_there():
    table = shipped_table()
    assert set(table.sheets) == SHEETS
    assert set(table.packs) == PACKS
    assert len(table.dont_use_for) == 5
    assert len(table.clarifications) == 7
    assert set(table.symptoms) == set(SYMPTOMS)
    assert len(table.rows["convergence-issues"].data["mistakes"]) == 4
    asked = Counter(len(row.data["questions"]) for row in table.part("sections"))
    assert asked == {4: 4, 0: 3}


def test_every_row_has_one_primary_route_first():
    for row in shipped_table().rows.values():
        ranks = [r.rank for r in row.routes]
        assert ranks[0] == "primary", row.id
        assert ranks.count("primary") == 1, row.id


def test_every_sheet_is_a_page_or_two_in_the_same_parts():
    for name in SHEETS:
        text = sheet_text(name)
        assert 350 < len(text.split()) < 1500, name
        headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
        assert headings[:2] == ["Symptoms that lead here", "First checks"], name
        assert headings[-4:] == ["Background", "When not", "How to verify that it helped", "Sources"], name
        assert "Settings" in headings, name
    with pytest.raises(BadConfig, match="did you mean 'gradient-management'"):
        sheet_text("gradient-managment")


def test_sheets_name_only_symptoms_and_sheets_that_exist():
    names = set(SYMPTOMS) | SHEETS | PACKS
    for name in SHEETS:
        for listed in re.findall(r"^- (.*)$", sheet_text(name).split("## First checks")[0], re.MULTILINE):
            for word in re.findall(r"`([a-z-]+)`", listed):
                assert word in names, (name, word)


def test_every_symptom_leads_to_a_sheet():
    led = {w for name in SHEETS for w in re.findall(r"`([a-z-]+)`", sheet_text(name).split("## First checks")[0])}
    assert set(SYMPTOMS) <= led


def test_all_symptoms_are_reached_by_a_cause_with_a_fix():
    table = shipped_table()
    for entry in table.symptoms.values():
        assert any(prior > 0 and table.causes[cause].fixes for cause, prior in entry.causes), entry.id


def test_every_cause_belongs_to_a_symptom():
    table = shipped_table()
    assert set(table.causes) == {c for entry in table.symptoms.values() for c, _ in entry.causes}


def test_causes_are_told_in_a_name_and_a_clause():
    causes = shipped_table().causes.values()
    assert len({c.name for c in causes}) == len(causes)
    for c in causes:
        assert len(c.name) <= 45, c.name
        assert len(c.why) <= 80, c.why
        assert not c.why.endswith("."), c.why


def test_usual_rates_are_ranges_and_the_first_is_for_any_optimizer():
    assert usual_rate(None) == usual_rate("unheard-of") == usual_rates()[0]
    assert usual_rate("AdamW_torch_fused").optimizers[0] == "adam"
    for u in usual_rates():
        assert u.low < u.start < u.high
        places = [u.place(r) for r in (u.low / 20, u.low / 2, u.low, u.start, u.high, 2 * u.high, 2 * u.far * u.high)]
        assert places == ["far-below", "below", "low-end", "usual", "usual", "above", "far-above"]


def test_nothing_is_read_before_it_is_needed():
    shipped_table.cache_clear()
    knowledge = Knowledge.load()
    assert shipped_table.cache_info().currsize == 0
    assert knowledge.table is shipped_table()
    assert load_table() == shipped_table()


def test_facts_and_settings_share_no_name():
    assert not set(DERIVED) & set(vocabulary())
    assert fact_names() == set(DERIVED) | set(vocabulary())


# -------------------------------------------------------------------------------------- bad data refused
def unstable(r, i):
    return r["sections"][1]["routes"][i]


def first_fix(c, **change):
    c["loss-scale"]["fixes"][0].update(change)


def first_reason(c, **change):
    c["loss-scale"]["for"][0].update(change)


def gpu(r, **test):
    r["gpu_utilization"][0].update(when=test)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r, c, s: unstable(r, 0).update(sheet="gradient-managment"), "sections: row 2 (unstable): route 1"),
        (lambda r, c, s: unstable(r, 0).update(sheet="gradient-managment"), "did you mean 'gradient-management'"),
        (lambda r, c, s: unstable(r, 4).update(pack="pytorch"), "unknown pack 'pytorch'"),
        (lambda r, c, s: unstable(r, 0).update(rank="first"), "unknown rank 'first'"),
        (lambda r, c, s: unstable(r, 0).pop("why"), "the key 'why' is missing"),
        (lambda r, c, s: r["sections"][1]["questions"].append("precison"), "did you mean 'precision'"),
        (lambda r, c, s: r["sections"][1].update(id="not-learning"), "two rows are called 'not-learning'"),
        (lambda r, c, s: gpu(r, gpu_use=1), "unknown fact 'gpu_use'"),
        (lambda r, c, s: gpu(r, gpu_utilization={"under": 1}), "unknown test 'under'"),
        (lambda r, c, s: gpu(r, gpu_utilization={"below": "x"}), "needs a number"),
        (lambda r, c, s: r["mistakes"][2]["symptoms"].append("nan"), "unknown symptom 'nan'"),
        (lambda r, c, s: r["questions"]["precision"].update(set="precission"), "unknown setting 'precission'"),
        (lambda r, c, s: r["dont_use_for"][0].update(use="torch"), "routing.yaml: dont_use_for"),
        (lambda r, c, s: r.pop("scenarios"), "routing.yaml: the key 'scenarios' is missing"),
        (lambda r, c, s: r.update(extra=1), "unknown key 'extra'"),
        (lambda r, c, s: r["scenarios"][0].update(nam="x"), "unknown key 'nam'; did you mean 'name'"),
        (lambda r, c, s: r["sections"][0].update(ask_first="loss-behavior"), "did you mean 'loss-behaviour'"),
        (lambda r, c, s: r["sections"][0].update(table="loss_behavior"), "unknown part of the table 'loss_behavior'"),
        (lambda r, c, s: r["loss_behaviour"][0].update(symptom="flatt"), "unknown symptom 'flatt'"),
        (lambda r, c, s: r["scenarios"][5].update(avoids="mistake-dpo"), "unknown mistake 'mistake-dpo'"),
        (lambda r, c, s: r["clarifications"][0].pop("answers"), "needs answers or a question of the table"),
        (lambda r, c, s: r["clarifications"][4]["then"].update(both="bad"), "unknown row of the table 'bad'"),
        (lambda r, c, s: r["checklists"].update(x=["flat"]), "routing.yaml: checklists: flat has two"),
        (lambda r, c, s: r["checklists"].update(x=["flatt"]), "unknown symptom 'flatt'"),
        (lambda r, c, s: first_reason(c, say="at {scale}"), "causes.yaml: loss-scale: for 1: unknown fact"),
        (lambda r, c, s: first_reason(c, weight=-1), "weight must be a number above 0"),
        (lambda r, c, s: first_fix(c, change={"lr": 1}), "unknown setting 'lr'"),
        (lambda r, c, s: first_fix(c, change={"precision": "bf16"}), "unknown fact 'bf16'"),
        (lambda r, c, s: first_fix(c, change={"loss_scale": {"half": 1}}), "unknown operation 'half'"),
        (lambda r, c, s: first_fix(c, action="from {weight_decay}"), "needs `plain`, to be said where weight_decay"),
        (lambda r, c, s: first_fix(c, sheet="experiment-tracking"), "among the cause's routes"),
        (lambda r, c, s: first_fix(c, touches=["precison"]), "did you mean 'precision'"),
        (
            lambda r, c, s: c["loss-scale"].update(unless=[{"rl": True}]),
            "causes.yaml: loss-scale: unless: unknown fact",
        ),
        (lambda r, c, s: c["loss-scale"].pop("name"), "causes.yaml: loss-scale: the key 'name' is missing"),
        (
            lambda r, c, s: r["rewordings"][0].update(route="grads"),
            "routing.yaml: rewordings: 1: unknown sheet or pack",
        ),
        (lambda r, c, s: r["rewordings"][0].update(why="{x}"), "rewordings: 1: unknown fact 'x'"),
        (lambda r, c, s: s["flat"].update(section="flatness"), "symptoms.yaml: flat: unknown section"),
        (lambda r, c, s: s["flat"]["causes"].update({"bad-luck": 1}), "symptoms.yaml: flat: unknown cause 'bad-luck'"),
        (lambda r, c, s: s["flat"]["routes"][0]["take"].append("loss-flatt"), "did you mean 'loss-flat'"),
        (lambda r, c, s: s["flat"]["routes"][0].update(when={"symptom": "flat"}), "must hold without a condition"),
        (lambda r, c, s: s.pop("stall"), "symptoms.yaml: no entry for stall"),
        (lambda r, c, s: s.update(stalled=s["stall"]), "unknown symptom 'stalled'"),
    ],
)
def test_bad_knowledge_is_refused_with_file_and_key(files, change, message):
    change(*files)
    text = refused(files)
    assert message in text
    assert "\n" not in text
    assert re.match(r"(routing|causes|symptoms)\.yaml", text)


def test_a_bad_vocabulary_is_refused():
    with pytest.raises(BadConfig, match=r"v.yaml: lr: unknown kind 'float'"):
        parse_vocabulary({"lr": {"kind": "float", "about": "", "keys": []}}, "v.yaml")
    with pytest.raises(BadConfig, match="needs exactly"):
        parse_vocabulary({"lr": {"kind": "number"}}, "v.yaml")


# -------------------------------------------------------------------------------------- the small language
@pytest.mark.parametrize(
    ("condition", "facts", "expected"),
    [
        ({}, {}, True),
        ({"a": True}, {"a": True}, True),
        ({"a": True}, {"a": 1}, False),
        ({"a": True}, {}, False),
        ({"a": "unknown"}, {}, True),
        ({"a": "unknown"}, {"a": 0}, False),
        ({"a": "known"}, {"a": False}, True),
        ({"a": {"at_least": 1, "below": 3}}, {"a": 2.9}, True),
        ({"a": {"at_least": 1, "below": 3}}, {"a": 3}, False),
        ({"a": {"above": 1}}, {"a": "many"}, False),
        ({"a": {"above": 0}}, {"a": True}, False),
        ({"a": {"one_of": ["x", "y"]}}, {"a": "y"}, True),
        ({"a": {"has": "x"}}, {"a": ("x", "z")}, True),
        ({"a": {"not": "x"}}, {"a": "y"}, True),
        ({"a": {"not": "x"}}, {}, False),
    ],
)
def test_conditions(condition, facts, expected):
    assert holds(condition, facts) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({"over": ["lr", 3]}, 1e-4),
        ({"over": ["lr", 0]}, None),
        ({"times": ["lr", "absent"]}, None),
        ({"whole": {"times": ["steps", 0.05]}}, 50),
        ({"most": [{"least": [{"times": ["lr", 3]}, 0.1]}, 0.01]}, 0.01),
        ({"value": "bf16"}, "bf16"),
        ("lr", 3e-4),
        (2, 2.0),
    ],
)
def test_expressions(expression, expected):
    assert compute(expression, {"lr": 3e-4, "steps": 1000}) == expected


def test_sentences_with_unknown_numbers_are_left_unsaid():
    assert fill("rose {x}×", {"x": 12.3456}) == "rose 12.3×"
    assert fill("rose {x}×", {}) is None
    assert fill("{x}", {"x": 65536.0}) == "65,536"


def test_one_of_a_thing_is_singular():
    assert fill("{n} reports, {m} reports", {"n": 1, "m": 11}) == "1 report, 11 reports"
    assert fill("{n} times", {"n": 3.1}) == "3.1 times"


@pytest.mark.parametrize(
    ("logged", "expected"),
    [
        ({"fp16": True, "bf16": False}, {"precision": "fp16"}),
        ({"args/fp16": False, "args/bf16": False}, {"precision": "fp32"}),
        ({"precision": "bf16-mixed"}, {"precision": "bf16"}),
        ({"trainer.precision": "16-mixed"}, {"precision": "fp16"}),
        ({"torch_dtype": "torch.bfloat16"}, {"precision": "bf16"}),
        ({"fp8": "hybrid"}, {"precision": "fp8"}),
        ({"precision": 32}, {"precision": "fp32"}),
        ({"clip-grad": "1.0"}, {"max_grad_norm": 1.0}),
        ({"dataset_size": "50k", "model_size": "125M"}, {"dataset_size": 50_000, "model_size": 125e6}),
        ({"args/learning_rate": 1e-4, "learning_rate": "3e-4"}, {"learning_rate": 3e-4}),
        ({"shuffle": "no"}, {"shuffle": False}),
        ({"weight_decay": "heavy", "unrelated": 3}, {}),
    ],
)
def test_settings_are_read_under_any_name(logged, expected):
    assert read_settings(logged) == expected
