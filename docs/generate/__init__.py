"""The pages of docs/ that follow from code and data: `python -m docs.generate [--check]`.

| page | from |
|---|---|
| `rules.md` | the shipped rules, their detectors' parameters and module texts |
| `roles.md` | the role table |
| `symptoms.md`, `symptoms/NAME.md`, `causes.md` | `symptoms.yaml`, `causes.yaml`, the sheets, the packs' pages |
| `routing.md` | `routing.yaml` |
| `checklists.md` | `checklists.yaml` |
| `config.md`, its list of settings | `vocabulary.yaml` |

With `--check` nothing is written; the exit status is 1 if a page is stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

from docs.generate import causes, checklists, roles, routing, rules, settings, symptoms

DOCS = Path(__file__).parents[1]


def pages(docs: Path = DOCS) -> dict[str, str]:
    """Return the content of every generated page by its name in docs/."""
    return {
        "rules.md": rules.page(),
        "roles.md": roles.page(),
        "symptoms.md": symptoms.index(),
        **symptoms.pages(),
        "causes.md": causes.page(),
        "routing.md": routing.page(),
        "checklists.md": checklists.page(),
        "config.md": settings.page((docs / "config.md").read_text("utf-8")),
    }


def stale(docs: Path = DOCS) -> list[str]:
    """Return the names of the pages that aren't what they would be written as, and of those that would be none."""
    wanted = pages(docs)
    old = [n for n, text in wanted.items() if not (p := docs / n).is_file() or p.read_text("utf-8") != text]
    return old + [name for name in _there(docs) if name not in wanted]


def write(docs: Path = DOCS) -> None:
    """Write every page, and remove what was one once."""
    wanted = pages(docs)
    (docs / "symptoms").mkdir(exist_ok=True)
    for name, text in wanted.items():
        (docs / name).write_text(text, "utf-8")
    for name in _there(docs):
        if name not in wanted:
            (docs / name).unlink()


def _there(docs: Path) -> list[str]:
    return [f"symptoms/{p.name}" for p in sorted((docs / "symptoms").glob("*.md"))]


def main(arguments: list[str]) -> int:
    """Write the pages, or check them; return the exit status."""
    if "--check" not in arguments:
        write()
        return 0
    old = stale()
    sys.stdout.write("".join(f"docs/{name} is stale: run `make docs` and commit it\n" for name in old))
    return int(bool(old))
