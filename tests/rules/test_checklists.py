"""Checklists, failure modes and typical values: each is there, in order; bad data is refused; the advice agrees."""

import copy
import re

import pytest

from trainmon_rules.diagnosis.checklists import FAILURES, TYPICAL, page, parse_checklists, shipped_checklists
from trainmon_rules.diagnosis.knowledge import shipped_table
from trainmon_rules.errors import BadConfig
from trainmon_rules.yamlfile import load_packaged

SHIPPED = shipped_checklists()
TABLE = shipped_table()
SHEETS = {**TABLE.sheets, **TABLE.packs}
WORDS = {  # a word of each step of the texts' lists, in their order
    "nan-checklist": ["3–10×", "clip_grad_norm_", "inputs", "softcap", "QK-norm", "initialisation", "grad_accum_steps"],
    "slow-checklist": ["torch.compile", "matmul_precision", "non_blocking", "torch.profiler", "gc.freeze", "8 (bf16)"],
    "plateau-checklist": ["2–5×", "warm-up", "weight decay", "Print the rate", "too small"],
    "oom-checklist": ["Smaller batch", "expandable_segments", "set_to_none", "to_empty", "checkpoint()", "8-bit"],
    "sanity-checks": [
        "single batch", "capacity", "regularisation", "gradient norms", "augmented", "classes", "rate finder",
    ],
    "debugging-recipe": ["one with the data", "end to end", "Overfit one batch", "then regularise", "known defaults"],
    "silent-failures": ["Leakage", "inference", "cleanlab", "Shuffling", "tokenizer"],
    "what-to-monitor": ["Gradient norms", "activations", "50 %", "schedule is applied"],
}  # fmt: skip
UNORDERED = {"silent-failures", "what-to-monitor"}


@pytest.mark.parametrize("name", WORDS)
def test_a_checklist_has_its_steps_in_order(name):
    steps = SHIPPED.lists[name].steps
    assert [word for word, step in zip(WORDS[name], steps, strict=True) if word not in step.do] == []
    text = page(name)
    places = [text.index(step.do) for step in steps]
    assert places == sorted(places)
    assert SHIPPED.lists[name].ordered is (name not in UNORDERED)
    assert ("\n1. " in text) is (name not in UNORDERED)


def test_there_is_no_other_checklist():
    assert set(SHIPPED.lists) == set(WORDS)


FAILED = [
    ("Loss = NaN", "nonfinite", "rate too high", "clip gradients", "check the data"),
    ("Loss doesn't decrease", "flat", "data loading", "overfit a single batch first", "check the labels"),
    ("Val loss increases, train decreases", "overfit", "overfitting", "more data", "stop early"),
    ("Train loss oscillates wildly", "oscillation", "batch too small", "lower the rate", "enlarge the batch"),
    ("Loss plateaus", "plateau", "local minimum", "lower the rate", "change the scheduler"),
    ("Accuracy stuck at random", "chance-accuracy", "labels shuffled", "verify the data pipeline end to end", ""),
]


@pytest.mark.parametrize("row", range(len(FAILED)), ids=[f[1] for f in FAILED])
def test_a_failure_mode_has_symptom_cause_and_fixes(row):
    says, symptom, cause, first, last = FAILED[row]
    mode = SHIPPED.failures[row]
    assert len(SHIPPED.failures) == len(FAILED)
    assert (mode.says, mode.symptom) == (says, symptom)
    assert cause in mode.causes
    assert mode.fixes[0] == first
    assert last in (*mode.fixes, "")
    assert mode.says in page(FAILURES)


VALUES = {
    "max-grad-norm": {1.0, 5.0, 0.5},
    "warmup": {1, 10},
    "learning-rate-search": {1e-5, 1e-2},
    "peak-learning-rate": {3e-4},
    "rate-after-nan": {3, 10},
    "rate-at-plateau": {2, 5},
    "rate-finder-start": {1e-7},
    "weight-decay": {0.01, 0.1},
    "dropout": {0.1, 0.5},
    "drop-path": {0.1, 0.3},
    "early-stopping": {10},
    "batch-size": {16, 256},
    "momentum": {0.9},
    "adam-beta2": {0.999, 0.95},
    "adam-epsilon": {1e-8, 1e-10},
    "tokens-a-parameter": {20},
    "data-repeats": {4},
    "mfu": {30, 40, 50},
    "gpu-utilization": {50, 80},
    "alignment": {8, 64},
    "eight-bit-saving": {30},
    "gc-stall": {500},
    "dead-relu": {50},
    "fast-fail": {100},
    "dataset-small": {1000},
    "dataset-medium": {10_000},
    "dataset-moderate": {100_000},
}


def test_the_typical_values_are_the_texts():
    assert {name: set(t.numbers) for name, t in SHIPPED.typical.items()} == VALUES
    text = page(TYPICAL)
    for row in SHIPPED.typical.values():
        assert row.words in text
    assert "| max_norm of gradient clipping | 1 (language models, Transformers), 5 (in general), 0.5" in text
    assert "| warm-up, of all steps | 1 to 10%; 1–5 % in recent recipes" in text


def test_what_the_fixes_set_is_typical():
    usual = {t.setting: t for t in SHIPPED.typical.values() if t.setting and t.setting != "learning_rate"}
    fixes = [f for c in TABLE.causes.values() for f in c.fixes] + [f for s in TABLE.symptoms.values() for f in s.fixes]
    fixed = [(k, e["value"]) for f in fixes for k, e in f.change.items() if isinstance(e, dict) and "value" in e]
    judged = [(k, v, usual[k].numbers) for k, v in fixed if k in usual]
    assert len(judged) > 5
    assert [(k, v) for k, v, numbers in judged if not min(numbers) <= v <= max(numbers)] == []


def test_the_tables_thresholds_are_the_typical_values():
    def limits(*rows):
        return {limit for row in rows for test in TABLE.rows[row].when.values() for limit in test.values()}

    assert limits("gpu-low", "gpu-high") == VALUES["gpu-utilization"]
    assert limits("data-small", "data-large") == VALUES["dataset-small"] | VALUES["dataset-medium"]


def test_symptoms_name_lists_that_exist():
    assert set(TABLE.checklists.values()) <= set(SHIPPED.lists)
    assert TABLE.checklists["nonfinite"] == "nan-checklist"
    assert TABLE.checklists["throughput-drop"] == TABLE.checklists["low-utilization"] == "slow-checklist"
    assert TABLE.checklists["plateau"] == TABLE.checklists["slow"] == "plateau-checklist"
    assert TABLE.checklists["memory-growth"] == "oom-checklist"
    assert "For: `nonfinite`, `divergence`, `grad-explosion`." in page("nan-checklist")


def test_an_unknown_list_is_refused_with_the_closest():
    with pytest.raises(BadConfig, match="did you mean 'nan-checklist'"):
        page("nan-checklst")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("typical"), "the key 'typical' is missing"),
        (lambda d: d["checklists"][0].update(order=1), "unknown key 'order'; did you mean 'ordered'"),
        (lambda d: d["checklists"][0]["steps"][2].update(sheet="gradients"), "(nan-checklist): step 3: unknown sheet"),
        (lambda d: d["checklists"][1].update(id="nan-checklist"), "two entries are called 'nan-checklist'"),
        (lambda d: d["failure_modes"][0].update(symptom="nan"), "failure_modes: 1: unknown symptom 'nan'"),
        (lambda d: d["typical"][0].update(setting="max_norm"), "typical: 1: unknown setting 'max_norm'"),
        (lambda d: d["typical"][0].update(value=3), "(max-grad-norm): needs a value, or low and high, or levels"),
        (lambda d: d["typical"][1].update(low=20), "(warmup): low must be below high"),
        (lambda d: d["typical"][1].update(low="1 %"), "(warmup): its values must be numbers"),
    ],
)
def test_bad_lists_are_refused_with_file_and_key(change, message):
    data = copy.deepcopy(load_packaged("checklists.yaml"))
    change(data)
    with pytest.raises(BadConfig) as caught:
        parse_checklists(data, SHEETS)
    assert message in str(caught.value)
    assert re.match(r"checklists\.yaml: ", str(caught.value))
