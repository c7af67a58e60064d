"""Golden files: what was looked at once and must stay as it was.

`check_golden("terminal/one.txt", text)` compares with `tests/data/golden/terminal/one.txt`. After a wanted
change, run the tests once with UPDATE_GOLDEN=1, read the diff, and commit it.
"""

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "data" / "golden"


def check_golden(name: str, text: str) -> None:
    """Compare `text` with the golden file of that name, or rewrite the file if UPDATE_GOLDEN is set."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN", "") not in ("", "0"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
        return
    assert path.is_file(), f"{name} is missing: run once with UPDATE_GOLDEN=1 and read what it wrote"
    assert text == path.read_bytes().decode("utf-8")
