"""The corpus of real public logs: everything is read, and the bar is met."""

from pathlib import Path

import pytest

from tests.corpus_score import judge, score
from trainmon import replay

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows(corpus):
    return score(corpus)


def test_every_file_replays_without_a_traceback(corpus: Path):
    for path in sorted(p for p in corpus.rglob("*") if p.is_file() and p.parent != corpus):
        report = replay(path)
        assert report.runs or report.errors, path


def test_the_folder_replays_as_a_whole(corpus: Path):
    report = replay(corpus)
    assert len(report.runs) > 100


def test_no_critical_on_a_healthy_or_short_file(rows):
    assert judge(rows).criticals == []


def test_few_stray_warnings_on_healthy_files(rows):
    result = judge(rows)
    assert len(result.strays) <= 0.1 * result.quiet, result.strays


def test_most_failing_files_show_the_required_symptoms(rows):
    result = judge(rows)
    assert len(result.missed) <= 0.2 * result.failing, result.missed
