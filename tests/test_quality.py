"""Healthy runs with everything they log page nobody; `make quality` counts the rest."""

import numpy as np
import pytest

from tests.healthy import WHOLE
from tests.quality import fires, judged
from trainmon_rules.findings import Severity


def pages(name, seed, rows):
    return {rule: n for (_, rule, severity), n in fires(name, seed, rows).items() if severity is Severity.CRITICAL}


@pytest.mark.parametrize("name", WHOLE)
def test_a_healthy_run_pages_nobody(name):
    assert [pages(name, seed, 3_000) for seed in range(3)] == [{}] * 3


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE)
def test_a_long_healthy_run_pages_nobody(name):
    assert [pages(name, seed, 20_000) for seed in range(5)] == [{}] * 5


def test_a_broken_run_would_be_heard():
    columns = WHOLE["gaussian"](3_000, 0)
    columns["loss"] = np.where(np.arange(3_000) < 2_000, columns["loss"], columns["loss"] + 5)
    assert Severity.CRITICAL in {f.severity for f in judged(columns)}
