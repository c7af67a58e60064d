"""`trainmon route` as a user runs it."""

import json

import pytest

from tests.monitor.test_cli import one_line, trainmon


def test_a_query_gets_what_to_read_in_order_and_what_to_answer():
    done = trainmon("route", "my loss is NaN")
    assert done.returncode == 0
    assert done.stderr == b""
    text = done.stdout.decode("ascii")
    assert text.startswith("Loss NaN  (heard: loss NaN)\n   read       trainmon explain gradient-management: ")
    assert "\n   not        learning-rate-scheduling first: " in text
    assert "--set precision=fp16" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100


def test_words_need_no_quotes():
    assert trainmon("route", "my", "loss", "is", "NaN").stdout == trainmon("route", "my loss is NaN").stdout


def test_a_vague_query_gets_one_question_and_the_ways_to_go_on():
    text = trainmon("route", "fix my training").stdout.decode()
    assert "answer     What specific issue? Not learning? Unstable? Overfitting? Too slow?" in text
    assert '   go on with trainmon route "not learning"\n              trainmon route "unstable"\n' in text
    assert "read" not in text


def test_an_answer_routes():
    asked = trainmon("route", "training slow").stdout.decode()
    assert "--set gpu_utilization=35" in asked
    answered = trainmon("route", "training slow", "--set", "gpu_utilization=35").stdout.decode()
    assert "read       trainmon explain pytorch-engineering: " in answered
    assert answered.endswith("with gpu_utilization=35\n")


def test_what_is_not_known_is_said_with_the_closest_symptoms():
    done = trainmon("route", "plateeau")
    assert done.returncode == 0
    assert b"Nothing that the routing table knows is in these words." in done.stdout
    assert b"trainmon explain plateau: " in done.stdout


def test_json_is_strict_and_has_the_reports_routes():
    data = json.loads(trainmon("route", "--format", "json", "DPO is unstable").stdout)
    assert data["schema"] == "trainmon.route/1"
    [topic] = data["topics"]
    assert topic["row"] == "boundary-preference-unstable"
    assert topic["routes"][0] == {
        "sheet": "llm-specialist",
        "rank": "primary",
        "why": "β, reference model, pairs: the method is looked at first",
        "pack": "llm-specialist",
    }
    assert data["closest"] == []


@pytest.mark.parametrize("text", ["", "   "])
def test_an_empty_query_is_an_error(text):
    one_line(trainmon("route", text), "say what is wrong")


def test_no_query_at_all_is_an_error():
    done = trainmon("route")
    assert done.returncode == 2
    assert b"Missing argument 'TEXT...'" in done.stderr


def test_an_unknown_answer_is_refused_with_the_closest_key():
    one_line(trainmon("route", "slow", "--set", "gpu_utilisation=3"), "did you mean 'gpu_utilization'")


def test_bytes_that_are_no_text_do_no_harm():
    done = trainmon("route", "--format", "json", "loss \udcff\x1b[31m NaN")
    assert done.returncode == 0
    assert json.loads(done.stdout)["topics"][0]["row"] == "mistake-nan"
    assert b"\x1b" not in trainmon("route", "x\x1b[31m\udcff spikes").stdout
