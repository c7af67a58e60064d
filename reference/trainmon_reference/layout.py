"""Where simulated runs lie in their folder: `NAME/seed-N`, under a hidden name while they are written."""

from __future__ import annotations

from pathlib import Path


def folder_of(out: Path, scenario: str, seed: int) -> Path:
    """Return the folder of a run."""
    return out / scenario / f"seed-{seed}"


def draft_of(out: Path, scenario: str, seed: int) -> Path:
    """Return where a run is written until it is whole; no search for logs looks there."""
    return out / scenario / f".seed-{seed}.part"
