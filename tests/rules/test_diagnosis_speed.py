"""What the diagnosis makes of speed and memory: real runs on which the five rules fire."""

import numpy as np
import pytest

from tests.engine import session
from tests.rules.detectors.speed import MEGATRON, clock, noisy
from trainmon_rules.diagnosis import Knowledge, diagnose
from trainmon_rules.diagnosis.facts import find_facts
from trainmon_rules.state import Settings

N = 1500
LOSS = np.ones(N)


def incident(symptom, tags, answers=None, **kwargs):
    """The incident that this symptom names, with its run."""
    run = session(tags, settings=Settings.default(answers), **kwargs).runs[0]
    [found] = [i for i in run.incidents if i.symptom == symptom]
    return found, run


def diagnosed(*args, **kwargs):
    found, run = incident(*args, **kwargs)
    return diagnose(found, run, Knowledge.load())


def facts(*args, **kwargs):
    return find_facts(*incident(*args, **kwargs))


def primary(d):
    assert [r.rank for r in d.routes].count("primary") == 1
    return d.routes[0].sheet


def changes(d):
    return {k: v for fix in d.fixes for k, v in (fix.change or {}).items()}


def slow(**beside):
    """A run that takes 30 % longer from row 700 on, with other numbers beside it."""
    step = noisy(N, np.where(np.arange(N) < 700, 30.0, 39.0))
    return {MEGATRON: step, "loss": LOSS, **{k: np.broadcast_to(v, N) for k, v in beside.items()}}


# -------------------------------------------------------------------------------------------------- throughput-drop
def test_a_slower_run_asks_for_the_gpu_and_looks_at_the_machine_first():
    d = diagnosed("throughput-drop", slow())
    assert d.causes[0].cause == "a slower machine"
    assert d.causes[0].evidence_for[0].startswith("a step takes 29.7 % longer")
    assert primary(d) == "pytorch-engineering"
    assert d.questions[0].startswith("What's your GPU utilization percentage?")
    assert "before step 700" in d.fixes[0].action


@pytest.mark.parametrize(
    ("use", "first", "cause"),
    [
        (30.0, "pytorch-engineering", "data loading"),
        (65.0, "pytorch-engineering", "a slower machine"),
        (95.0, "batch-size-and-memory-tradeoffs", "compute bound"),
    ],
)
def test_the_rows_of_the_table_follow_from_the_logged_gpu_use(use, first, cause):
    d = diagnosed("throughput-drop", slow(**{"gpu.0.gpu": np.where(np.arange(N) < 690, 96.0, use)}))
    assert primary(d) == first
    assert cause in {c.cause for c in d.causes}
    assert not any("GPU utilization" in q for q in d.questions)


def test_between_half_and_eighty_percent_the_table_has_no_row_and_a_profile_is_asked_for():
    d = diagnosed("throughput-drop", slow(gpu_util=65.0))
    assert d.fixes[0].action.startswith("Profile a few steps before anything else: a GPU that is busy for 65 %")
    assert primary(d) == "pytorch-engineering"
    assert d.routes[0].why.startswith("profiling")


def test_waiting_for_data_answers_the_question_for_the_gpu():
    t = np.arange(N)
    d = diagnosed("throughput-drop", slow(data_time=np.where(t < 700, 2.0, 20.0)))
    assert d.causes[0].cause == "data loading"
    assert "51 % of a step is waiting for data" in d.causes[0].evidence_for
    assert d.routes[0].why.startswith("data loading, profiling")
    assert d.questions == ()


def test_a_loader_that_is_not_waited_for_speaks_against_it():
    d = diagnosed("throughput-drop", slow(data_time=0.5))
    assert "data loading" in {c.cause for c in d.ruled_out}
    assert d.causes[0].cause == "a slower machine"
    assert "the loader isn't waited for" in d.causes[0].evidence_for


def test_the_users_word_goes_before_the_log():
    assert facts("throughput-drop", slow(gpu_util=95.0), {"gpu_utilization": 30})["gpu_utilization"] == 30.0


def test_facts_of_a_slowdown():
    f = facts("throughput-drop", slow())
    assert f["slowdown_percent"] == pytest.approx(30, abs=1.5)
    assert f["pace_then"] == pytest.approx(30, rel=0.01)
    assert f["pace_now"] == pytest.approx(39, rel=0.01)
    assert f["waits_for_data"] is False


# -------------------------------------------------------------------------------------------------- low-utilization
def idle(**beside):
    rng = np.random.default_rng(0)
    use = np.clip(rng.normal(30, 5, N), 0, 100).round()
    return {"loss": LOSS, "gpu.0.gpu": use, **beside}


def test_an_idle_gpu_waits_for_data_unless_the_loader_says_otherwise():
    d = diagnosed("low-utilization", idle())
    assert d.causes[0].cause == "data loading"
    assert "compute bound" in {c.cause for c in d.ruled_out}
    assert primary(d) == "pytorch-engineering"
    assert d.questions == ()
    d = diagnosed("low-utilization", idle(step_time_s=np.full(N, 1.0), data_time=np.full(N, 0.02)))
    assert d.causes[0].cause == "steps too small for the GPU"


def test_workers_are_doubled_from_what_they_are():
    assert changes(diagnosed("low-utilization", idle(), {"num_workers": 2}))["num_workers"] == 5
    assert changes(diagnosed("low-utilization", idle(), {"batch_size": 16}))["batch_size"] == 32


def test_waiting_alone_leads_to_the_table_of_an_idle_gpu():
    tags = {"loss": LOSS, "time/iter": np.ones(N), "data_time": np.full(N, 0.6)}
    d = diagnosed("low-utilization", tags)
    assert d.routes[0].why.startswith("data loading, profiling")
    assert d.questions == ()


def test_the_busiest_gpu_is_the_jobs():
    tags = slow(**{"gpu.0.gpu": 0.0, "gpu.1.gpu": 92.0, "gpu.2.gpu": 0.0})
    assert facts("throughput-drop", tags)["gpu_utilization"] == 92.0


def test_gpu_use_is_that_of_the_slow_time():
    t = np.arange(N)
    tags = slow(**{"gpu.0.gpu": np.where(t < 700, 95.0, 20.0)})
    assert facts("throughput-drop", tags, time=clock(tags[MEGATRON]))["gpu_utilization"] == 20.0
    tags[MEGATRON] = np.where(t < 900, tags[MEGATRON], 30.0)
    tags["gpu.0.gpu"] = np.where((t < 700) | (t > 900), 95.0, 20.0)
    assert facts("throughput-drop", tags)["gpu_utilization"] == 20.0  # it is over


# --------------------------------------------------------------------------------------------------- periodic-stall
def paused(every, pause):
    x = noisy(N, 0.2, noise=0.1)
    x[every::every] += pause
    return clock(x)


def test_pauses_that_nothing_explains_are_the_loops():
    d = diagnosed("periodic-stall", {"loss": LOSS}, time=paused(25, 0.8))
    assert d.causes[0].cause == "pauses of the loop"
    assert d.causes[0].evidence_for == ("every 25 steps, 13.4 % of the time",)
    assert "garbage collector" in d.fixes[0].action
    assert {r.sheet: r.rank for r in d.routes}["training-loop-architecture"] == "secondary"


@pytest.mark.parametrize(
    ("tags", "answers", "cause", "change"),
    [
        ({"eval_loss": 1}, {}, "pauses of the loop", {"eval_steps": 200}),
        ({}, {"save_steps": 100}, "pauses of the loop", {"save_steps": 200}),
        ({"epoch": 1}, {}, "data loading", {}),
    ],
)
def test_pauses_are_treated_by_what_they_come_with(tags, answers, cause, change):
    log = {"loss": LOSS}
    if "eval_loss" in tags:
        log["eval_loss"] = [1.0 if i and i % 100 == 0 else None for i in range(N)]
    if "epoch" in tags:
        log["epoch"] = np.arange(N) / 100
    d = diagnosed("periodic-stall", log, answers, time=paused(100, 6.0))
    assert d.causes[0].cause == cause
    assert changes(d) == change
    assert ("persistent workers" in d.fixes[0].action) == (cause == "data loading")


# ------------------------------------------------------------------------------------------------------------ stall
def test_silence_is_looked_for_in_the_processes_first():
    x = noisy(N, 2.0)
    x[900] = 18 * 3600
    d = diagnosed("stall", {"loss": LOSS}, time=clock(x))
    assert d.causes[0].cause == "hang"
    assert d.causes[0].evidence_for == ("nothing was logged for 18 h, usually a report comes every 2 s",)
    assert primary(d) == "pytorch-engineering"
    assert d.fixes[0].action.startswith("It went on by itself")
    assert "stopped from outside" in {c.cause for c in d.causes}


# ---------------------------------------------------------------------------------------------------- memory-growth
def leaking(answers=None, tag="gpu_mem_gb"):
    return diagnosed("memory-growth", {tag: 40 + 0.02 * np.arange(N), "loss": LOSS}, answers)


def test_a_leak_is_looked_for_first_and_room_is_made_in_the_recipes_order():
    d = leaking({"gpu_memory": "80GB", "batch_size": 16, "accumulate_grad_batches": 2})
    actions = [f.action for f in d.fixes]
    assert d.causes[0].evidence_for == ("gpu_mem_gb grows steadily and runs out about step 2000",)
    order = ["Log numbers, not tensors", "Save a checkpoint before step 1999", "half the batch", "expandable_segments",
             "set_to_none", "meta device", "activation checkpointing", "8-bit optimizer"]  # fmt: skip
    text = "\n".join(actions)
    places = [text.index(word) for word in order]
    assert places == sorted(places)
    assert changes(d) == {"batch_size": 8, "accumulate_grad_batches": 4}
    assert "8 examples × 4 instead of 16 × 2" in text
    assert primary(d) == "pytorch-engineering"


def test_without_a_capacity_there_is_no_date_and_no_emergency():
    d = leaking()
    assert [f.action.split(",")[0] for f in d.fixes] == ["Log numbers"]
    assert d.causes[0].evidence_for == ("gpu_mem_gb grows steadily",)


def test_host_memory_is_another_matter():
    d = leaking({"host_memory": 80}, "proc.memory.rssGB")
    assert d.fixes[0].action.startswith("Look at the loader's workers")
    assert not any("meta device" in f.action for f in d.fixes)
