"""Shared fixtures. Tests use real objects: real files, the real engine; nothing of ours is replaced."""

import os
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real public logs, named by TRAINMON_CORPUS; tests that need it skip without."""
    folder = os.environ.get("TRAINMON_CORPUS", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("TRAINMON_CORPUS does not name the corpus folder")
    return Path(folder)
