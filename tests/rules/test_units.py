"""Units that logs leave unsaid, and amounts of memory as people type them."""

import math

import numpy as np
import pytest

from trainmon_rules import units
from trainmon_rules.errors import BadConfig
from trainmon_rules.vocabulary import check_answer, read_settings
from trainmon_rules.words import duration


@pytest.mark.parametrize(
    ("tag", "typical", "expected"),
    [
        ("elapsed time per iteration (s)", 105.2, 1.0),
        ("elapsed time per iteration (ms)", 0.4, 1e-3),
        ("train_step_timing in s", 40.0, 1.0),
        ("step_time", 0.3, 1.0),  # by size where nothing is said
        ("dt", 135.0, 1e-3),
        ("time_ms", 209.0, 1e-3),
    ],
)
def test_seconds_of_a_step_time(tag, typical, expected):
    assert units.seconds(tag, typical) == expected


@pytest.mark.parametrize(
    ("tag", "values", "expected"),
    [
        ("gpu.0.gpu", [35, 97], [35, 97]),
        ("gpu_util", [0.35, 0.97], [35, 97]),
        ("utilization.gpu (%)", [0.5, 1.0], [0.5, 1.0]),
        ("gpu_util", [0, 0], [0, 0]),
        ("gpu_util", [1, 0], None),  # 1 % or all of it
        ("gpu_util", [1, 1], None),
        ("gpu_util", [4000, 5000], None),
    ],
)
def test_shares_in_percent(tag, values, expected):
    got = units.percent(np.array(values, float), tag)
    assert got is None if expected is None else got == pytest.approx(expected)


@pytest.mark.parametrize(
    ("tag", "typical", "expected"),
    [
        ("gpu.0.memoryAllocated", 40, units.PERCENT),
        ("gpu.0.memoryAllocatedBytes", 4e10, 2.0**-30),
        ("proc.memory.percent", 12, units.PERCENT),
        ("proc.memory.rssMB", 8000, 2.0**-10),
        ("memory/max_active(GiB)", 61, 1.0),
        ("DCGM_FI_DEV_FB_USED", 40_000, 2.0**-10),
        ("memory", 7265, 2.0**-10),  # MMEngine: by size
        ("memory", 4e10, 2.0**-30),
        ("memory", 61, None),  # GB or percent
    ],
)
def test_units_of_memory(tag, typical, expected):
    assert units.memory_unit(tag, typical) == expected


@pytest.mark.parametrize("said", ["80GB", "80 GiB", "80G", "81920MB", "0.078125 TB", 80, "80", "85899345920 B"])
def test_memory_is_typed_with_or_without_its_unit(said):
    assert check_answer("gpu_memory", said, "--set") == ("gpu_memory", 80.0)


@pytest.mark.parametrize("said", ["much", "-3GB", "GB", "80 apples", "", True, "1" * 70 + "GB"])
def test_what_is_no_amount_of_memory_is_refused(said):
    with pytest.raises(BadConfig, match="gpu_memory"):
        check_answer("gpu_memory", said, "--set")


def test_memory_in_the_settings_of_a_log():
    assert read_settings({"hparams/gpu_memory_gb": "24GB", "host_memory": 512})["gpu_memory"] == 24.0
    assert read_settings({"host_memory": "512 GB"}) == {"host_memory": 512.0}
    assert "gpu_memory" not in read_settings({"gpu_memory": math.nan})


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.5, "0.5 s"), (45, "45 s"), (119, "119 s"), (1080, "18 min"), (8280, "2.3 h"), (3e5, "3.5 days")],
)
def test_a_length_of_time_is_said_in_words(seconds, said):
    assert duration(seconds) == said
