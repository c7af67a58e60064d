"""Shared fixtures. Tests use real objects: real files, the real engine; nothing of ours is replaced."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ["TRAINMON_DEBUG"] = "1"  # a fault of ours is raised here, not put into the report

DATA = Path(__file__).parent / "data"

# Nothing here may fail by the clock: a busy machine is no defect, and the first text drawn in a fresh clone takes
# more than a second, as the table of characters is built for it.
settings.register_profile("trainmon", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("trainmon")


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real public logs, named by TRAINMON_CORPUS; tests that need it skip without."""
    folder = os.environ.get("TRAINMON_CORPUS", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("TRAINMON_CORPUS does not name the corpus folder")
    return Path(folder)
