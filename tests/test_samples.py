"""The six sample runs that the repository ships: the whole way from the file to the reports, golden.

After a wanted change: `UPDATE_GOLDEN=1 make test-quick`, read the difference, commit it.
"""

import io

import pytest
from rich.console import Console

from tests.conftest import DATA
from tests.golden import check_golden
from tests.make_samples import write
from trainmon import replay
from trainmon_exporters.json_report import render_json
from trainmon_exporters.terminal import print_report

SAMPLES = {
    "nan-after-explosion.jsonl": ("critical", {"nonfinite"}),
    "overfit.csv": ("warning", {"overfit"}),
    "loss-scale-collapse.log": ("critical", {"loss-scale-collapse"}),
    "never-learns.json": ("warning", {"flat"}),
    "spike-recovers.log": ("warning", {"loss-spike"}),
    "healthy-warm-restarts": ("healthy", set()),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_verdict_is_right(name):
    [run] = replay(DATA / "samples" / name).runs
    verdict, symptoms = SAMPLES[name]
    assert run.verdict == verdict
    assert {i.symptom for i in run.incidents if i.severity != "info"} == symptoms


@pytest.mark.parametrize("name", SAMPLES)
def test_the_json_report_is_golden(name):
    check_golden(f"samples/{name}.json", render_json(replay(DATA / "samples" / name)))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_terminal_report_is_golden(name):
    out = io.StringIO()
    print_report(replay(DATA / "samples" / name), Console(file=out, width=100, force_terminal=False, no_color=True))
    check_golden(f"samples/{name}.txt", out.getvalue())


def test_the_samples_are_what_their_script_writes(tmp_path):
    write(tmp_path)
    made = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    shipped = {p.relative_to(DATA / "samples"): p.read_bytes() for p in (DATA / "samples").rglob("*") if p.is_file()}
    assert made == shipped
