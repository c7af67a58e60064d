"""What people type reaches the right row of the routing table; what the table doesn't know reaches none."""

import json
import re
from pathlib import Path

import pytest

from trainmon.answers import parse_options
from trainmon_rules.diagnosis.knowledge import shipped_table
from trainmon_rules.errors import BadConfig
from trainmon_rules.routing import route
from trainmon_rules.routing.queries import shipped_queries
from trainmon_rules.rules import SYMPTOMS

FILE = Path(__file__).parents[2] / "data" / "queries.tsv"
QUERIES = [line.split("\t") for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
TABLE = shipped_table()
SET = re.compile(r"--set (\S+=\S+?)(?=[\s)])")


def rows(routed):
    return [t.row for t in routed.topics]


def routes(topic):
    return [(r.sheet, r.rank) for r in topic.routes]


def one(query, **answers):
    [topic] = route(query, answers).topics
    return topic


@pytest.mark.parametrize(("query", "expected"), QUERIES, ids=[q for q, _ in QUERIES])
def test_a_query_reaches_its_rows(query, expected):
    wanted = [w for w in expected.split() if w != "ask"]
    routed = route(query)
    assert rows(routed) == ([] if wanted == ["unknown"] else wanted)
    assert any(t.ask for t in routed.topics) == ("ask" in expected.split())
    for topic in routed.topics:
        assert bool(topic.routes) != bool(topic.ask)
        assert topic.words
    assert not (routed.topics and routed.closest)


SHOUTED = [q for q, expected in QUERIES if not re.search("ZeRO|KTO|IPO|unknown", q + expected)]


@pytest.mark.parametrize("query", SHOUTED)
def test_case_blanks_and_fillers_change_nothing(query):
    expected = rows(route(query))
    assert rows(route(query.upper())) == expected
    assert rows(route(f"  please,   {query}  ")) == expected
    assert rows(route(f"My {query.replace(' ', '   ')}")) == expected
    assert route(query) == route(query)


# ---------------------------------------------------------------------- what the answer holds
def test_nan_leads_to_gradients_first_and_says_why_not_to_the_rate():
    topic = one("my loss is NaN")
    assert routes(topic)[:2] == [("gradient-management", "primary"), ("learning-rate-scheduling", "secondary")]
    assert "pytorch-engineering" in {r.pack for r in topic.routes}
    assert topic.avoids == ("learning-rate-scheduling first: gradient explosion is the most common cause",)
    assert [q.partition("?")[0] for q in topic.questions] == [
        "Are you using mixed precision training",
        "When do NaN values appear - immediately at start, or after N epochs",
        "What's your learning rate and schedule",
        "What loss function are you using",
    ]
    assert topic.words == ("loss", "NaN")


def test_a_vague_query_is_asked_back_once_and_every_answer_goes_on():
    topic = one("fix my training")
    assert topic.ask == "What specific issue? Not learning? Unstable? Overfitting? Too slow?"
    assert topic.routes == ()
    assert [rows(route(a)) for a in topic.answers] == [
        ["mistake-not-learning"],
        ["unstable"],
        ["mistake-overfitting"],
        ["too-slow"],
    ]


ASKED = [c.query for c in TABLE.clarifications] + ["not learning", "loss not improving"]


@pytest.mark.parametrize("query", ASKED)
def test_what_is_asked_back_can_be_answered(query):
    topic = one(query)
    given = SET.findall(f"{topic.ask} ")
    assert topic.answers or given
    for answer in topic.answers:
        routed = route(answer)
        assert routed.topics, answer
        assert query not in [t.title for t in routed.topics], answer
    for option in given:
        assert route(query, parse_options([option])).topics[0].routes


def test_the_right_row_for_an_optimizer_of_a_transformer_names_the_mistake():
    topic = one("which optimizer for a transformer?")
    assert routes(topic) == [("optimization-algorithms", "primary")]
    assert topic.avoids == ("neural-architectures first: it is a choice of optimizer, not of architecture",)


def test_a_modern_optimizer_is_a_question_of_symptoms():
    assert one("should I use Lion?").ask == "What symptom is making you consider switching from AdamW?"
    because = one("use Lion because it's modern")
    assert routes(because) == [("optimization-algorithms", "primary")]
    assert because.avoids[0].startswith("switch the optimizer: modernity is no reason")
    assert one("loss spikes, should I switch to Muon?").row == "loss-spike"  # the symptom is told already


def test_an_unstable_preference_run_is_for_both_packs():
    for query in ("DPO is unstable", "DPO training unstable, fix optimizer", "my GRPO run is unstable"):
        topic = one(query)
        assert topic.routes[0].pack == "llm-specialist"
        assert {"gradient-management", "learning-rate-scheduling"} <= {r.sheet for r in topic.routes}
        assert any(a.startswith("optimization-algorithms alone") for a in topic.avoids)
    assert one("DPO is unstable").questions[0].startswith("Method-side issue")


def test_a_convergence_problem_comes_with_the_four_mistakes():
    topic = one("convergence issues")
    assert [s for s, _ in routes(topic)] == [
        "gradient-management", "learning-rate-scheduling", "optimization-algorithms",
    ]  # fmt: skip
    assert len(topic.avoids) == 4
    assert topic.note.startswith("stability (gradients), then")


@pytest.mark.parametrize(
    ("answers", "first", "second"),
    [
        ({"gpu_utilization": 35}, "pytorch-engineering", None),
        ({"gpu_utilization": 49.9}, "pytorch-engineering", None),
        ({"gpu_utilization": 65}, "pytorch-engineering", None),
        ({"gpu_utilization": 95}, "batch-size-and-memory-tradeoffs", "pytorch-engineering"),
        ({"gpu_utilization": 95, "augmentation": "heavy"}, "data-augmentation-strategies", "pytorch-engineering"),
        ({"gpu_utilization": 70, "memory_limited": True}, "batch-size-and-memory-tradeoffs", "pytorch-engineering"),
        ({"gpu_utilization": 65, "bottleneck": "compute"}, "batch-size-and-memory-tradeoffs", "pytorch-engineering"),
        ({"gpu_utilization": 65, "bottleneck": "data-loading"}, "pytorch-engineering", None),
        ({"bottleneck": "communication"}, "pytorch-engineering", "batch-size-and-memory-tradeoffs"),
    ],
)
@pytest.mark.parametrize("query", ["training slow", "takes too long", "low GPU utilization"])
def test_a_slow_run_is_routed_once_the_gpu_is_known(query, answers, first, second):
    topic = one(query, **answers)
    assert topic.ask is None
    assert topic.routes[0].sheet == first
    assert [r.sheet for r in topic.routes[1:2]] == ([second] if second else [])
    if answers.get("gpu_utilization") == 65 and "bottleneck" not in answers:
        assert topic.questions[0].startswith("GPU use between 50 and 80 % decides nothing: profile")
    else:
        assert "profile a few steps" not in " ".join(topic.questions)


@pytest.mark.parametrize(
    ("size", "first"),
    [(500, "data-augmentation-strategies"), (5000, "overfitting-prevention"), (50_000, "overfitting-prevention")],
)
def test_overfitting_hangs_on_the_dataset(size, first):
    topic = one("my model overfits", dataset_size=size)
    assert topic.routes[0].sheet == first
    assert {"overfitting-prevention", "data-augmentation-strategies"} <= {r.sheet for r in topic.routes}
    assert "How large is your dataset" not in " ".join(topic.questions)
    assert one(f"my model overfits on {size} examples").routes == topic.routes


def test_poor_performance_is_split_by_the_answer():
    assert "--set poor=validation" in one("my model performs poorly").ask
    assert one("my model performs poorly", poor="validation").routes[0].sheet == "overfitting-prevention"
    for poor in ("training", "both"):
        topic = one("my model performs poorly", poor=poor)
        assert topic.routes[0].sheet == "learning-rate-scheduling"
        assert topic.ask is None  # asked once


def test_a_query_for_another_pack_names_it():
    topic = one("how do I deploy my model")
    assert [(r.sheet, r.pack, r.rank) for r in topic.routes] == [("ml-production", "ml-production", "primary")]


# ---------------------------------------------------------------------- numbers and settings in the words
@pytest.mark.parametrize(
    ("query", "settings"),
    [
        ("training is slow, GPU utilization 35%", {"gpu_utilization": 35.0}),
        ("gpu usage is 95 % but it is slow", {"gpu_utilization": 95.0}),
        ("slow on 8 GPUs", {}),
        ("loss NaN in fp8", {"precision": "fp8"}),
        ("NaN in bf16 and in fp16", {}),
        ("overfitting with only 5k examples", {"dataset_size": 5000}),
        ("overfits, 20,000 training images", {"dataset_size": 20_000}),
        ("batch of 32 examples overfits", {"batch_size": 32}),
        ("slow, and augmentation is heavy", {"augmentation": "heavy"}),
        ("loss is NaN", {}),
    ],
)
def test_what_a_text_tells_by_itself_is_taken(query, settings):
    assert route(query).settings == settings


def test_an_answer_goes_before_the_text():
    routed = route("training slow, GPU at 35%", {"gpu_utilization": 95})
    assert routed.settings == {"gpu_utilization": 95}
    assert routed.topics[0].routes[0].sheet == "batch-size-and-memory-tradeoffs"


@pytest.mark.parametrize("query", [q for q, expected in QUERIES if "unknown" not in expected])
def test_no_question_is_put_twice(query):
    for topic in route(query).topics:
        for asked in filter(None, (topic.ask, *topic.questions)):
            for option in SET.findall(f"{asked} "):
                given = parse_options([option])
                [again] = [t for t in route(query, given).topics if t.row == topic.row]
                key = option.partition("=")[0]
                assert not any(f"--set {key}=" in q for q in filter(None, (again.ask, *again.questions))), option


# ---------------------------------------------------------------------- the mistakes
SETTINGS = [
    {}, {"precision": "fp8"}, {"precision": "fp32"}, {"gpu_utilization": 20}, {"gpu_utilization": 90},
    {"dataset_size": 100}, {"dataset_size": 10**6, "model_size": 1e9}, {"memory_limited": True},
    {"bottleneck": "compute"}, {"poor": "validation"}, {"learning_rate": 10.0}, {"labels_loaded": False},
]  # fmt: skip


def judged(topic):
    """The mistakes that a topic is about."""
    about = {topic.row, *(m.id for m in TABLE.mistakes if topic.row in (m.id, *m.symptoms))}
    row = TABLE.rows.get(topic.row)
    about |= {row.data.get("avoids"), row.data.get("symptom")} if row else set()
    return [m for m in TABLE.mistakes if m.wrong and (m.id in about or about & set(m.symptoms))]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_no_answer_is_a_mistake_of_the_table(settings):
    seen = set()
    for query, _ in QUERIES:
        for topic in route(query, settings).topics:
            for m in judged(topic):
                known = m.id == "mistake-slow" and {"gpu_utilization", "bottleneck"} & set(settings)
                names = [r.sheet for r in topic.routes]
                assert m.how != "primary" or known or names[:1] != [m.wrong], (query, m.id)
                assert m.how != "alone" or names != [m.wrong], (query, m.id)
                seen.add(m.id)
    assert seen == {m.id for m in TABLE.mistakes if m.wrong}


# ---------------------------------------------------------------------- what isn't known
def test_what_is_not_recognised_gets_the_closest_symptoms_and_no_route():
    routed = route("plateeau of the metrics")
    assert routed.topics == ()
    assert routed.closest[0].symptom == "plateau"
    assert len(routed.closest) <= 5
    assert route("qwertz").closest == ()
    assert route("?!").closest == ()


@pytest.mark.parametrize("query", ["", "   ", "\n\t"])
def test_an_empty_query_is_refused(query):
    with pytest.raises(BadConfig, match="say what is wrong"):
        route(query)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("my loss isn’t decreasing", ["not-learning"]),
        ("the loss is ＮａＮ", ["mistake-nan"]),
        ("μP to scale up", ["mistake-mup"]),
        ("µ-Transfer", ["mup"]),
        ("loss\tspikes\r\nevery day", ["loss-spike"]),
        ("Loss: NaN!!! (why?)", ["mistake-nan"]),
        ("the gradient is fine. Exploding kittens", ["unstable"]),
        ("no NaN, but the loss spikes", ["loss-spike"]),
        ("doesn't overfit, isn't slow", []),
        ("it is not that the loss is NaN", ["nonfinite"]),
    ],
)
def test_letters_and_denials(query, expected):
    assert rows(route(query)) == expected


HOSTILE = [
    "NaN " * 10_000,
    "a|b*" * 500,
    "(" * 5000,
    "\x00\x1b[31mloss\x1b[0m NaN",
    "\udcff\udc80 loss",
    "loss " * 300 + "flat " * 300,
    "🙂" * 3000,
    "not " * 3000 + "learning",
    "x" * 100_000,
    ". ".join(["loss NaN"] * 3000),
    "--set precision=fp16",
    "ﷺ" * 500,
]


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_safe_and_plain_json(query):
    routed = route(query)
    assert len(routed.topics) <= 3
    assert json.dumps(routed.as_dict(), allow_nan=False)
    assert routed == route(query)


# ---------------------------------------------------------------------- the phrases
def test_every_row_symptom_and_pack_can_be_reached_by_words():
    reached = {target.id for target, _ in shipped_queries().phrases}
    by_number = {"gpu-low", "gpu-high", "gpu-between", "data-medium", "data-large", "direct-question"}
    rows_of_the_table = {*TABLE.rows, *(c.id for c in TABLE.clarifications), *(e.id for e in TABLE.dont_use_for)}
    assert (rows_of_the_table | set(SYMPTOMS) | set(TABLE.sheets)) - reached <= by_number


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_a_symptom_is_found_by_its_word_and_its_title(symptom):
    entry = TABLE.symptoms[symptom]
    for text in (symptom, entry.title):
        routed = route(text)
        leads = {r.sheet for t in routed.topics for r in t.routes}
        asked = [t.ask for t in routed.topics if t.ask]
        assert asked or leads & {r.sheet for a in entry.routes for r in a.routes}, text


def test_a_title_of_two_words_each_of_which_means_more_is_not_torn_apart():
    for text in ("gpu idle", "memory grows", "loss diverges"):
        assert len(route(text).topics) == 1
