"""The list of settings in `config.md`."""

from __future__ import annotations

from docs.generate.markup import codes, table
from trainmon_rules.diagnosis.knowledge import shipped_table
from trainmon_rules.vocabulary import vocabulary

BEGIN, END = "<!-- settings: written by docs/generate -->", "<!-- end of settings -->"


def page(text: str) -> str:
    """Return config.md with its list afresh; what stands around it stays."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{_list()}\n\n{END}{rest.partition(END)[2]}"


def _list() -> str:
    asks: dict[str, str] = {q.set: q.ask for q in shipped_table().questions.values() if q.set}
    rows = ((f"`{s.name}`", s.kind, s.about, codes(s.keys), asks.get(s.name, "")) for s in vocabulary().values())
    return table(("setting", "kind", "meaning", "read from a log's own settings under", "answers"), rows)
