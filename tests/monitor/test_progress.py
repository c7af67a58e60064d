"""progress: a bar only for long reads on a terminal."""

import io

import pytest
from rich.console import Console

from trainmon.progress import LONG, Bar, bar, counting
from trainmon.replaying import find, replay, size_of


def shown(total):
    return Bar(total, Console(file=io.StringIO(), force_terminal=True, width=80))


def test_the_bar_adds_up_all_sources():
    with shown(100) as b:
        b("a", 10)
        b("a", 30)
        b("b", 20)
        assert b.done == 50


def test_a_second_source_of_the_same_name_counts_from_its_own_beginning():
    with shown(100) as b:
        b("a", 30)
        b("a", 10)
        b("a", 20)
        assert b.done == 50


def test_what_compressed_sources_hold_beyond_their_size_does_not_overshoot():
    with shown(100) as b:
        b("a.gz", 5_000)
        assert b.done == 100


def test_no_bar_without_a_terminal_or_for_short_reads():
    for total in (LONG - 1, 100 * LONG):
        with bar(total) as progress:
            assert progress is None


@pytest.mark.parametrize("cut", [0, 1])
def test_replay_reports_every_byte(tmp_path, cut):
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path in paths:
        path.write_text('{"step": 1, "loss": 2.0}\n' * (1000 + cut))
    found, errors = find(paths)
    assert errors == []
    done = {}
    replay(*paths, progress=done.__setitem__)
    assert done == {p.name: p.stat().st_size for p in paths}
    assert size_of(found) == sum(done.values())


def test_counting_is_quiet_without_a_terminal(capsys):
    with counting("simulating") as progress:
        assert progress is None
    assert capsys.readouterr().err == ""
