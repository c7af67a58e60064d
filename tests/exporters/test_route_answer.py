"""The answer to a query on a terminal: ranks in order, nothing twice, one way to go on."""

import io

import pytest
from rich.console import Console

from trainmon_exporters.route_answer import print_routed
from trainmon_rules.routing import route


def shown(query, width=100, **answers):
    out = io.StringIO()
    print_routed(route(query, answers), Console(file=out, width=width, height=25))
    return out.getvalue()


def labels(text):
    return [line[3:14].strip() for line in text.splitlines() if line.startswith("   ") and line[3:4].strip()]


def test_the_ranks_stand_in_order_each_label_once():
    assert labels(shown("my loss is NaN")) == ["read", "then", "also", "pack", "not", "to answer", "note"]


def test_two_topics_are_two_blocks():
    first, second, *_ = shown("loss is NaN and the GPU is idle").split("\n\n")
    assert first.startswith("Loss NaN")
    assert second.startswith("GPU is idle")
    assert labels(second)[0] == "answer"


@pytest.mark.parametrize("width", [20, 40, 60, 200])
@pytest.mark.parametrize("query", ["my loss is NaN", "fix my training", "no such thing", "slow"])
def test_it_fits_the_terminal(query, width):
    text = shown(query, width)
    assert max(map(len, text.splitlines())) <= max(40, min(width, 120))
    assert text.endswith("\n")


def test_an_answer_that_was_used_is_said():
    assert shown("training slow", gpu_utilization=35.0, memory_limited=False).endswith(
        "with gpu_utilization=35, memory_limited=no\n"
    )
    assert "\nwith " not in shown("training slow")
