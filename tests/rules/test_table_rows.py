"""Every row of the routing table, held against what the text says of it (tests/data/routing_table.tsv, by hand)."""

from pathlib import Path

import pytest

from trainmon_rules.diagnosis.entries import RANKS, ROW_KEYS
from trainmon_rules.diagnosis.knowledge import shipped_table

FILE = Path(__file__).parents[1] / "data" / "routing_table.tsv"
ROWS = [line.split("\t") for line in FILE.read_text("utf-8").splitlines() if not line.startswith(("#", "part\t"))]
TABLE = shipped_table()
NAMES = {name.partition("-")[0]: name for name in (*TABLE.sheets, *TABLE.packs)}
SAYS = {
    "sections": lambda row: " / ".join(row.data["names"]),
    "loss_behaviour": lambda row: row.data["behaviour"],
    "gpu_utilization": lambda row: row.data["utilization"],
    "dataset_size": lambda row: row.data["size"],
    "direct_questions": lambda row: row.data["query"],
    "modern_triggers": lambda row: " / ".join(row.data["triggers"]),
    "scenarios": lambda row: row.data["name"],
    "boundaries": lambda row: row.data["topic"],
    "mistakes": lambda row: row.data["says"],
}


def led_to(text):
    """The routes of a cell: name and rank."""
    ranks = {rank[0].upper() if rank != "cross-pack" else "X": rank for rank in RANKS}
    pairs = (cell.rsplit(" ", 1) for cell in text.split(", ") if text != "-")
    return [(NAMES[name], ranks[rank]) for name, rank in pairs]


def asked(row):
    fault = next((m for m in TABLE.mistakes if m.id == row.id), None)
    own = [row.data.get("ask")] if fault is None else [fault.ask]
    return [*row.data.get("questions", ()), *filter(None, own)]


@pytest.mark.parametrize(("part", "name", "says", "routes", "asks"), ROWS, ids=[r[1] for r in ROWS])
def test_a_row_says_leads_and_asks_as_the_text_has_it(part, name, says, routes, asks):
    if part == "clarifications":
        entry = next(c for c in TABLE.clarifications if c.id == name)
        assert (entry.query, entry.ask) == (says, asks)
    elif part == "dont_use_for":
        entry = next(e for e in TABLE.dont_use_for if e.id == name)
        assert (entry.what, [(entry.use, "primary")]) == (says, led_to(routes))
    else:
        row = TABLE.rows[name]
        assert row.part == part
        assert SAYS[part](row) == says
        assert [(r.sheet, r.rank) for r in row.routes] == led_to(routes)
        assert asked(row) == ([] if asks == "-" else asks.split())
        assert [r.pack for r in row.routes] == [r.sheet if r.sheet in TABLE.packs else None for r in row.routes]


def test_no_row_stands_in_the_table_only():
    shipped = {*TABLE.rows, *(c.id for c in TABLE.clarifications), *(e.id for e in TABLE.dont_use_for)}
    assert shipped == {r[1] for r in ROWS}
    order = [r[1] for r in ROWS if r[0] in ROW_KEYS]
    assert order == [name for name in TABLE.rows if TABLE.rows[name].part in ROW_KEYS]


def test_only_what_the_table_leaves_out_is_our_own():
    assert [r.id for r in TABLE.rows.values() if r.data.get("own")] == ["gpu-between"]


KEYWORDS = {
    "not-learning": "stuck, flat loss, not improving, not learning, accuracy not increasing",
    "unstable": "NaN, Inf, exploding, diverging, unstable, spikes, FP8 underflow, loss scale",
    "overfits": "overfitting, train/val gap, poor generalization, memorizing training data",
    "too-slow": "slow training, low GPU utilization, takes too long, time per epoch",
    "direct-question": "",
    "modern": "Lion, Sophia, Muon, Shampoo, AdEMAMix, Schedule-Free, Prodigy, 8-bit optimizer, bitsandbytes, "
    "paged optimizer, WSD schedule, warmup-stable-decay, FP8, BF16, mixed precision, muP, mu-Transfer, ZeRO, "
    "FSDP strategy",
    "tracking": "experiment tracking, MLflow, wandb, tensorboard, compare runs, log metrics",
}


@pytest.mark.parametrize("section", KEYWORDS)
def test_a_section_has_the_texts_keywords(section):
    assert ", ".join(TABLE.rows[section].data["keywords"]) == KEYWORDS[section]


QUESTIONS = {
    "loss-behaviour": "Is loss completely flat from the start, decreasing very slowly, or was it learning then "
    "stopped?",
    "any-nan": "Any NaN or Inf values in your loss?",
    "optimizer-and-rate": "What optimizer and learning rate are you using?",
    "loss-curve": "What does your loss curve look like over time?",
    "nan-when": "When do NaN values appear - immediately at start, or after N epochs?",
    "rate-and-schedule": "What's your learning rate and schedule?",
    "precision": "Are you using mixed precision training? FP16, BF16, or FP8?",
    "loss-function": "What loss function are you using?",
    "dataset-size": "How large is your dataset (number of training examples)?",
    "train-against-validation": "What's the train accuracy vs validation accuracy?",
    "regularization": "What regularization are you currently using?",
    "model-against-data": "What's your model size (parameters) relative to dataset size?",
    "per-step-or-many-steps": "Is it slow per-step (low throughput) or just need many steps?",
    "gpu-utilization": "What's your GPU utilization percentage?",
    "augmentation": "Are you using data augmentation? How heavy?",
    "batch-and-precision": "What's your current batch size? Precision (FP32/BF16/FP8)?",
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_diagnostic_question_stands_in_the_texts_words(name):
    assert TABLE.questions[name].ask == QUESTIONS[name]


WRONG = {
    "mistake-slow": ("batch-size-and-memory-tradeoffs", "primary"),
    "mistake-not-learning": ("optimization-algorithms", "primary"),
    "mistake-nan": ("learning-rate-scheduling", "primary"),
    "mistake-overfitting": ("overfitting-prevention", "alone"),
    "mistake-speed-up": ("optimization-algorithms", "primary"),
    "mistake-optimizer-for-transformer": ("neural-architectures", "primary"),
    "mistake-modernity": ("", ""),
    "mistake-preference": ("optimization-algorithms", "alone"),
    "mistake-loss-scale": ("learning-rate-scheduling", "primary"),
    "mistake-sharding": ("pytorch-engineering", "alone"),
    "mistake-mup": ("optimization-algorithms", "primary"),
}


def test_the_eleven_mistakes_name_the_wrong_route():
    assert {m.id: (m.wrong, m.how) for m in TABLE.mistakes} == WRONG
    assert all(m.wrong != m.correct[0].sheet for m in TABLE.mistakes if m.how == "primary")
    assert all({r.sheet for r in m.correct} != {m.wrong} for m in TABLE.mistakes if m.how == "alone")
    assert next(m.habit for m in TABLE.mistakes if not m.wrong) == "switch the optimizer"


def test_where_there_is_a_threshold_the_row_says_when():
    assert {name: dict(row.when) for name, row in TABLE.rows.items() if row.when and row.part != "mistakes"} == {
        "gpu-low": {"gpu_utilization": {"below": 50}},
        "gpu-high-augmented": {"gpu_utilization": {"above": 80}, "augmentation": {"one_of": ["heavy", "strong"]}},
        "gpu-memory-limited": {"memory_limited": True},
        "gpu-high": {"gpu_utilization": {"above": 80}},
        "gpu-between": {"gpu_utilization": {"at_least": 50, "at_most": 80}},
        "data-small": {"dataset_size": {"below": 1000}},
        "data-medium": {"dataset_size": {"at_least": 1000, "at_most": 10000}},
        "data-large": {"dataset_size": {"above": 10000}},
        "data-model-too-large": {"model_too_large": True},
    }


def test_the_direct_questions_come_with_the_texts_examples():
    examples = {row.id: ", ".join(row.data["examples"]) for row in TABLE.part("direct_questions")}
    assert examples["which-optimizer"] == (
        "SGD, Adam, AdamW, Lion, Sophia, Muon, Shampoo, AdEMAMix, Schedule-Free, Prodigy, AdamW8bit, paged variants"
    )
    assert examples["which-learning-rate"] == "initial LR, warmup, cosine vs WSD vs linear, infinite-LR variants"
    assert examples["which-sharding"] == "ZeRO-1/2/3, FSDP full vs hybrid shard"
    assert examples["track-experiments"] == "MLflow, W&B, TensorBoard"
    assert examples["tune-hyperparameters"] == "search strategies, AutoML, muP for transfer across scale"


def test_convergence_issues_hold_the_texts_four_mistakes():
    assert TABLE.rows["convergence-issues"].data["mistakes"] == [
        "Jumping to change optimizer without checking gradients",
        "Blaming optimizer when LR is the issue",
        "Not using gradient monitoring to diagnose",
        "Switching to Lion/Sophia/Muon because it's modern, without verifying AdamW was tuned",
    ]


def test_what_the_table_is_for():
    assert len(TABLE.use_when) == 13
    words = " ".join(TABLE.use_when)
    for topic in ("not learning", "NaN", "Overfitting", "slow", "Experiment", "WSD", "FP8", "ZeRO", "muP", "pipeline"):
        assert topic in words
    assert len(TABLE.principles) == 5
    assert TABLE.covers.startswith("training dynamics")


def test_rows_that_put_a_mistake_right_name_it():
    named = {row.id: row.data["avoids"] for row in TABLE.rows.values() if "avoids" in row.data}
    assert named == {
        "boundary-preference-unstable": "mistake-preference",
        "boundary-distributed-strategy": "mistake-sharding",
        "which-sharding": "mistake-sharding",
        "sharding": "mistake-sharding",
        "modern-optimizer": "mistake-modernity",
        "mup": "mistake-mup",
        "preference-tuning": "mistake-preference",
    }
