"""Contract 7 on real incidents: no mistake of the table is the way, whatever is answered; nothing is asked twice.

Runs with a fault go through the real engine once; then they are diagnosed under many answers of the user.
"""

import copy
import functools
import math
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams import AILING, base, sessions
from trainmon import replay
from trainmon.answers import parse_options
from trainmon.config import load_settings
from trainmon_rules.diagnosis import Knowledge, diagnose
from trainmon_rules.diagnosis.conditions import holds
from trainmon_rules.diagnosis.facts import find_facts
from trainmon_rules.diagnosis.knowledge import parse_table, shipped_table
from trainmon_rules.diagnosis.routes import applies, put_all_right, settled
from trainmon_rules.incidents import Incident
from trainmon_rules.report import Route
from trainmon_rules.rules import SYMPTOMS
from trainmon_rules.state import Settings
from trainmon_rules.vocabulary import vocabulary
from trainmon_rules.yamlfile import load_packaged

NAN = math.nan
TABLE = shipped_table()
OF_INCIDENTS = [m for m in TABLE.mistakes if m.symptoms]
SET = re.compile(r"--set (\S+=\S+?)(?=[\s)])")


def scale_first(seed=0):
    """The loss scale falls for long, then the loss is lost."""
    run = base(seed=seed)
    run["loss_scale"][280:] = [65536.0 * 0.5 ** min(i, 40) for i in range(420)]
    run["loss"][320:] = [NAN] * 380
    return run


def calm_nan(seed=0):
    """NaN out of a clear sky, at a rate that still warms up."""
    run = base(seed=seed)
    run["loss"][300:] = [NAN] * 400
    run["lr"] = [1e-6 * (i + 1) for i in range(700)]
    return run


def preference(seed=0):
    """A run of DPO whose loss explodes and is lost."""
    run = base(seed=seed)
    run["rewards/margins"] = [0.001 * i for i in range(700)]
    for i in range(300, 400):
        run["loss"][i] += 0.2 * (i - 300)
    run["loss"][400:] = [NAN] * 300
    return run


def everything(seed=0):
    """It spikes, explodes, is NaN for a while, then never learns again, and validation gets worse."""
    run = base(seed=seed)
    for i in range(200, 204):
        run["loss"][i] += 5
    for i in range(290, 320):
        run["grad_norm"][i] *= 1000
    run["loss"][320:330] = [NAN] * 10
    run["loss"][330:] = [2.0 + 0.001 * (i % 3) for i in range(370)]
    run["eval_loss"] = [0.5 + 0.01 * abs(i - 100) if i % 10 == 9 else None for i in range(700)]
    return run


RUNS = {**AILING, **{f.__name__: f for f in (scale_first, calm_nan, preference, everything)}}


@functools.cache
def fed(name):
    """The runs of a log with a fault, as the engine knows them."""
    return sessions(RUNS[name]()).runs


@functools.cache
def incidents(name):
    return [(run, i) for run in fed(name) for i in run.incidents]


def diagnosed(run, incident, answers, knowledge=None):
    run.answers = answers
    try:
        return diagnose(incident, run, knowledge or Knowledge.load()), find_facts(incident, run)
    finally:
        run.answers = {}


def check(diagnosis, facts, mistakes=TABLE.mistakes):
    """Contract 7; returns the mistakes that the incident could have made."""
    names = [r.sheet for r in diagnosis.routes]
    assert [r.rank for r in diagnosis.routes].count("primary") == 1
    assert diagnosis.routes[0].rank == "primary"
    assert len(set(names)) == len(names)
    about = [m for m in mistakes if set(m.symptoms) & set(facts["symptoms"]) and holds(m.when, facts) and m.wrong]
    for m in about:
        assert m.how != "primary" or names[0] != m.wrong, m.id
        assert m.how != "alone" or names != [m.wrong], m.id
    assert len(diagnosis.questions) <= 1
    return {m.id for m in about}


# ------------------------------------------------------------------------------------------- the mistakes
PLAIN = {
    "number": st.sampled_from([0.0, 1e-9, 1e-4, 0.5, 3.0, 42.0, 65.0, 95.0, 5e3, 1e9]),
    "integer": st.sampled_from([0, 1, 8, 500, 5000, 50_000, 10**7]),
    "flag": st.booleans(),
}
TEXTS = {q.set: [t for t in q.tries if isinstance(t, str)] for q in TABLE.questions.values() if q.set}
KEYS = {
    name: PLAIN[s.kind]
    if s.kind in PLAIN
    else st.sampled_from(s.choices or TEXTS.get(name) or ("adamw", "sgd", "custom", "relu"))
    for name, s in vocabulary().items()
}
ANSWERS = st.lists(st.sampled_from(sorted(KEYS)), max_size=6, unique=True).flatmap(
    lambda keys: st.fixed_dictionaries({k: KEYS[k] for k in keys})
)


@given(name=st.sampled_from(sorted(RUNS)), answers=ANSWERS)
@settings(max_examples=150)
def test_no_answer_makes_a_mistake_of_the_table_the_way(name, answers):
    for run, incident in incidents(name):
        check(*diagnosed(run, incident, answers))


@given(name=st.sampled_from(sorted(RUNS)), answers=ANSWERS)
@settings(max_examples=60)
def test_routes_follow_the_table(name, answers):
    """All sheets of the row that holds are there, and a mistake aside, its first one is the first."""
    for run, incident in incidents(name):
        diagnosis, facts = diagnosed(run, incident, answers)
        facts["top_cause"] = next((c for c, r in TABLE.causes.items() if r.name == diagnosis.causes[0].cause), "")
        row = next(a.routes for a in TABLE.symptoms[incident.symptom].routes if holds(a.when, facts))
        assert {r.sheet for r in row} <= {r.sheet for r in diagnosis.routes}
        wrong = {m.wrong for m in OF_INCIDENTS if applies(m, facts)}
        if settled(row)[0].sheet not in wrong:
            assert diagnosis.routes[0].sheet == settled(row)[0].sheet


def test_every_symptom_that_a_mistake_is_about_is_met_on_a_real_run():
    met = {s for name in RUNS for _, i in incidents(name) for s in i.symptoms}
    found_by_a_rule = {r.symptom for r in Settings.default().rules}
    assert {s for m in OF_INCIDENTS for s in m.symptoms} & found_by_a_rule <= met
    assert {"nonfinite", "flat", "plateau", "overfit", "loss-scale-collapse"} <= met


@pytest.mark.parametrize("mistake", OF_INCIDENTS, ids=lambda m: m.id)
def test_a_mistake_is_put_right_on_real_incidents_even_if_the_symptoms_file_makes_it(mistake):
    routing, causes, symptoms = (copy.deepcopy(load_packaged(f"{n}.yaml")) for n in ("routing", "causes", "symptoms"))
    kind = "pack" if mistake.wrong in TABLE.packs else "sheet"
    for symptom in mistake.symptoms:
        symptoms[symptom]["routes"] = [{"take": [{kind: mistake.wrong, "rank": "primary", "why": "x"}]}]
        symptoms[symptom].pop("fixes", None)
    for cause in causes.values():
        cause.update(routes=[{kind: mistake.wrong, "rank": "primary", "why": "x"}], fixes=[])
        cause["fixes"] = [{"action": "x", "sheet": mistake.wrong}]
    for entry in symptoms.values():
        entry.pop("fixes", None)
    knowledge = Knowledge(parse_table(routing, causes, symptoms))
    seen = False
    for name in RUNS:
        for run, incident in incidents(name):
            named = set(incident.symptoms) & set(mistake.symptoms)
            if incident.symptom in mistake.symptoms:
                diagnosis, facts = diagnosed(run, incident, {}, knowledge)
                assert mistake.id in check(diagnosis, facts, [mistake]) or not holds(mistake.when, facts)
                seen = seen or bool(named)
    detected = {r.symptom for r in Settings.default().rules}
    assert seen or not detected & set(mistake.symptoms)


@given(st.permutations(list(TABLE.mistakes)), st.sets(st.sampled_from(SYMPTOMS), min_size=1, max_size=4))
@settings(max_examples=60)
def test_putting_one_mistake_right_makes_no_other(order, seen):
    facts = {"symptoms": tuple(seen)}
    for wrong in {m.wrong for m in TABLE.mistakes if m.wrong}:
        routes = [Route(wrong, "primary", "x", wrong if wrong in TABLE.packs else None)]
        about = [m for m in order if applies(m, facts)]
        routes = put_all_right(about, routes)
        for m in about:
            assert m.how != "primary" or routes[0].sheet != m.wrong, m.id
            assert m.how != "alone" or [r.sheet for r in routes] != [m.wrong], m.id


def test_preference_runs_are_never_the_optimizers_alone():
    found = [diagnosed(run, i, {}) for run, i in incidents("preference")]
    assert found
    for diagnosis, facts in found:
        assert facts["preference_run"] is True
        assert "llm-specialist" in {r.pack for r in diagnosis.routes}
        assert {"gradient-management", "learning-rate-scheduling"} <= {r.sheet for r in diagnosis.routes}


# ------------------------------------------------------------------------------------------ the questions
def supposed(run, incident, symptom):
    """The incident with another name, for symptoms that no run here has."""
    findings = tuple(replace(f, symptom=symptom) for f in incident.findings)
    return Incident(incident.id, incident.run, findings, replace(incident.lead, symptom=symptom))


def subjects():
    """A real incident for each symptom: one that has it, or else one that is called so."""
    real = {i.symptom: (run, i) for name in RUNS for run, i in incidents(name)}
    bare = incidents("flat")[0]
    return {s: real.get(s) or (bare[0], supposed(*bare, s)) for s in SYMPTOMS}


def told(diagnosis):
    return (diagnosis.causes, diagnosis.ruled_out, diagnosis.routes, diagnosis.fixes)


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_what_is_asked_can_be_answered_and_is_not_asked_again(symptom):
    run, incident = subjects()[symptom]
    ways = [({}, ())]
    while ways:
        answers, asked = ways.pop()
        diagnosis, facts = diagnosed(run, incident, answers)
        check(diagnosis, facts)
        if not diagnosis.questions:
            continue
        [text] = diagnosis.questions
        assert text not in asked
        assert len(asked) < 4
        options = SET.findall(text)
        assert options, text
        given_by = parse_options(options)
        again, _ = diagnosed(run, incident, {**answers, **given_by})
        assert text not in again.questions
        question = next(q for q in TABLE.questions.values() if text.startswith(q.ask))
        outcomes = [told(again)]
        for value in question.tries:
            answer = parse_options([f"{question.set}={value}"])
            d, _ = diagnosed(run, incident, {**answers, **answer})
            outcomes.append(told(d))
            ways.append(({**answers, **answer}, (*asked, text)))
        assert any(o != told(diagnosis) for o in outcomes), "no answer changes anything"


@pytest.mark.parametrize("name", [n for n, q in TABLE.questions.items() if q.set])
def test_what_a_question_prints_the_command_line_takes(name):
    question = TABLE.questions[name]
    options = SET.findall(question.text({}))
    assert [o.partition("=")[0] for o in options] == [question.set, *question.also_set]
    assert set(parse_options(options)) == {question.set, *question.also_set}
    for value in question.tries:
        assert parse_options([f"{question.set}={value}"])


@pytest.mark.parametrize(
    ("use", "first"),
    [(50, "pytorch-engineering"), (65, "pytorch-engineering"), (80, "pytorch-engineering")],
)
def test_between_the_tables_rows_a_profile_decides(use, first):
    run, incident = subjects()["throughput-drop"]
    diagnosis, _ = diagnosed(run, incident, {"gpu_utilization": use})
    assert diagnosis.routes[0].sheet == first
    [question] = diagnosis.questions
    assert question == (
        "GPU use between 50 and 80 % decides nothing: profile a few steps. What takes the time? "
        "(answer with --set bottleneck=data-loading)"
    )
    leads = {}
    for answer in vocabulary()["bottleneck"].choices:
        d, _ = diagnosed(run, incident, {"gpu_utilization": use, "bottleneck": answer})
        assert d.questions == ()
        leads[answer] = d.routes[0].sheet
    assert leads == {
        "data-loading": "pytorch-engineering",
        "augmentation": "data-augmentation-strategies",
        "compute": "batch-size-and-memory-tradeoffs",
        "memory": "batch-size-and-memory-tradeoffs",
        "communication": "pytorch-engineering",
    }


def test_a_log_is_asked_about_and_routed_once_it_is_answered(tmp_path):
    log = tmp_path / "run.csv"
    rows = [f"{i},{2.3 + 0.001 * (i % 3)}" for i in range(200)]
    log.write_text("\n".join(["step,loss", *rows]))
    [flat] = [i for i in replay(log).runs[0].incidents if i.symptom == "flat"]
    [option, _optimizer] = SET.findall(flat.questions[0])
    assert option.startswith("learning_rate=")
    for rate, cause in (("1e-8", "learning rate too low"), ("50", "learning rate too high")):
        answered = replay(log, settings=load_settings(None, [f"learning_rate={rate}"]))
        [again] = [i for i in answered.runs[0].incidents if i.symptom == "flat"]
        assert again.causes[0].cause == cause
        assert again.questions == ()
        assert again.routes[0].sheet == "learning-rate-scheduling"
