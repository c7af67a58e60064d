"""Settings of a run in one vocabulary, whatever the framework calls them.

`data/vocabulary.yaml` names each setting, its kind and the keys under which logs and configs keep it. The same
names are used by `--set`, by the facts of a diagnosis and by the `change` of a fix.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmon_rules.errors import BadConfig
from trainmon_rules.yamlfile import load_packaged

HUGE = 1e30  # no setting is larger; beyond it, arithmetic on settings overflows
LONGEST = 64  # characters of a number
KINDS = {
    "number": "a number",
    "integer": "a whole number",
    "memory": "an amount of memory, as 80GB",
    "flag": "yes or no",
    "text": "a name",
}
NUMERIC = ("number", "integer", "memory")
_NUMBER = re.compile(r"^[+-]?(\d[\d_,]*\.?\d*|\.\d+)(e[+-]?\d+)?\s*([kmbt%]?)$", re.IGNORECASE)
_SUFFIX = {"": 1.0, "%": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_MEMORY = re.compile(r"^(\d[\d_,.]*)\s*(?:([kmgt])(?:i?b)?|b)$", re.IGNORECASE)
_GIGABYTES = {"": 2.0**-30, "k": 2.0**-20, "m": 2.0**-10, "g": 1.0, "t": 1024.0}
_YES, _NO = {"true", "yes", "on", "1"}, {"false", "no", "off", "0", "none", ""}
_DTYPES = (
    ("fp8", ("fp8", "float8", "e4m3", "e5m2", "transformer-engine")),
    ("bf16", ("bf16", "bfloat16")),
    ("fp16", ("fp16", "float16", "half", "16-mixed", "16-true", "mixed_float16")),
    ("fp32", ("fp32", "float32", "32-true", "no", "none", "full", "32")),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One entry of the vocabulary."""

    name: str
    kind: str
    about: str
    keys: tuple[str, ...]
    choices: tuple[str, ...] = ()  # of a text: the values there are; empty if any will do

    @property
    def values(self) -> str:
        """What it may be, in words."""
        return ", ".join(self.choices[:-1]) + f" or {self.choices[-1]}" if self.choices else KINDS[self.kind]


@functools.cache
def vocabulary() -> Mapping[str, Setting]:
    """Return the shipped vocabulary by name; BadConfig if the file can't be used."""
    return parse_vocabulary(load_packaged("vocabulary.yaml"), "vocabulary.yaml")


def parse_vocabulary(data: Any, name: str) -> dict[str, Setting]:
    """Return a vocabulary file's content by name."""
    if not isinstance(data, Mapping):
        raise BadConfig(f"{name}: a vocabulary is a mapping of settings")
    out: dict[str, Setting] = {}
    for key, entry in data.items():
        if not isinstance(entry, Mapping) or set(entry) - {"choices"} != {"kind", "about", "keys"}:
            raise BadConfig(f"{name}: {key}: needs exactly kind, about and keys (a text may have choices)")
        if entry["kind"] not in KINDS:
            raise BadConfig(f"{name}: {key}: unknown kind {entry['kind']!r}; known: {', '.join(KINDS)}")
        texts = tuple(map(str, entry["keys"])), tuple(map(str, entry.get("choices", ())))
        out[key] = Setting(key, entry["kind"], str(entry["about"]), *texts)
    return out


def check_answer(key: str, value: Any, where: str) -> tuple[str, Any]:
    """Return an answer of the user's (`--set KEY=VALUE`) in the vocabulary's name and kind.

    Parameters
    ----------
    key : str
        A name of the vocabulary, or one of the names that logs use for it.
    value : any
        The answer as typed, or as a config file holds it.
    where : str
        What to name in the message.

    Raises
    ------
    BadConfig
        If there is no such key, or the value isn't one of its kind.
    """
    names = vocabulary()
    if key not in names:
        key = next((s.name for s in names.values() if leaf(key) in s.keys), key)
    if key not in names:
        spelt = {k: s.name for s in names.values() for k in (*s.keys, s.name)}
        close = difflib.get_close_matches(leaf(key), spelt, 1)
        hint = f"did you mean {spelt[close[0]]!r}?" if close else f"known: {', '.join(names)}"
        raise BadConfig(f"{where}: unknown key {key!r}; {hint}")
    setting = names[key]
    read: Any = _precision(value) if key == "precision" else read_value(value, setting.kind)
    wrong = read is None or (setting.choices and read not in setting.choices)
    if setting.kind == "integer" and not wrong:
        wrong = _number(value) != read
    if setting.kind in NUMERIC and not wrong:
        wrong = isinstance(value, bool)
    if wrong:
        raise BadConfig(f"{where}: {key} ({setting.about}) must be {setting.values}, not {str(value)!r}")
    if setting.kind in NUMERIC and read < 0:
        raise BadConfig(f"{where}: {key} ({setting.about}) can't be negative, as {value} is")
    return key, read


def answers_help() -> tuple[tuple[str, str, str], ...]:
    """Return what `--set` takes: for each key its name, what its value may be, and what it means."""
    return tuple((s.name, s.values, s.about) for s in vocabulary().values())


def read_settings(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run's hyper-parameters, config and answers say, in the vocabulary's names and kinds.

    Parameters
    ----------
    raw : mapping of str to value
        Flat names (paths joined with "/" or ".") to plain values, as logged.

    Returns
    -------
    dict of str to (float, int, bool or str)
        Only what is there and can be read; a key spelled exactly as the vocabulary does goes first.
    """
    by_key: dict[str, Any] = {}
    for path, value in raw.items():
        by_key.setdefault(leaf(str(path)), value)
    out: dict[str, Any] = {}
    for setting in vocabulary().values():
        candidates = [raw[setting.name]] if setting.name in raw else []
        candidates += [by_key[k] for k in setting.keys if k in by_key]
        for candidate in candidates:
            value = _precision(candidate) if setting.name == "precision" else read_value(candidate, setting.kind)
            if value is not None and not _is_unset(value):
                out[setting.name] = value
                break
    if "precision" not in raw and (flagged := _precision_flags(by_key)) is not None:
        out["precision"] = flagged
    return out


@dataclass(slots=True, eq=False)
class RunSettings:
    """A run's settings as one of its sources tells them, the user's answers in front.

    `raw` holds what the source has said so far, by the names in the log; `get` asks in the vocabulary's names.
    """

    answers: Mapping[str, Any] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)
    _read: dict[str, Any] | None = None

    def update(self, values: Mapping[str, Any]) -> None:
        """Take what the source says now; a later word goes before an earlier one."""
        self.raw.update(values)
        self._read = None

    def get(self, name: str) -> Any:
        """Return a setting of the vocabulary, None where nobody has said it."""
        if self._read is None:
            self._read = read_settings(ChainMap(dict(self.answers), self.raw))
        return self._read.get(name)


def read_value(value: Any, kind: str) -> Any:
    """Return `value` as the kind asks, None if it can't be read so ("50k", "10%", "1e-4", "yes" can).

    Memory is given in GB (of 1024 MB, as GPUs are sold): "80GB", "80 GiB", "81920MB" or 80.
    """
    if kind == "text":
        return value.strip().lower() if isinstance(value, str) and value.strip() else None
    if kind == "flag":
        text = str(value).strip().lower()
        return True if text in _YES else False if text in _NO else None
    if kind == "memory" and (amount := _gigabytes(value)) is not None:
        return amount
    number = _number(value)
    if number is None or kind in ("number", "memory"):
        return number
    return round(number)


def _gigabytes(value: Any) -> float | None:
    """Return an amount that is given with its unit, in GB."""
    match = _MEMORY.match(value.strip()) if isinstance(value, str) and len(value) <= LONGEST else None
    number = None if match is None else _number(match[1])
    return None if match is None or number is None else number * _GIGABYTES[(match[2] or "").lower()]


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        return float(value) if abs(value) < HUGE else None
    match = _NUMBER.match(value.strip()) if isinstance(value, str) and len(value) <= LONGEST else None
    if match is None:
        return None
    digits = match[1].replace("_", "").replace(",", "") + (match[2] or "")
    number = float(digits) * _SUFFIX[match[3].lower()]
    return number if abs(number) < HUGE else None


def _is_unset(value: Any) -> bool:
    """Whether a number is one of those with which frameworks say "not set": no setting is negative."""
    return isinstance(value, int | float) and value < 0


def leaf(path: str) -> str:
    """Return the last part of a setting's path, as the vocabulary spells names."""
    return re.split(r"[/.]", path.strip())[-1].lower().replace("-", "_")


def _precision(value: Any) -> str | None:
    text = str(value).strip().lower()
    if not text:
        return None
    if text == "16":
        return "fp16"
    return next((name for name, words in _DTYPES if text in words or any(w in text for w in words if len(w) > 3)), None)


def _precision_flags(by_key: Mapping[str, Any]) -> str | None:
    """`fp16: true`, `bf16: true`, `fp8: hybrid`; both 16-bit flags present and off mean fp32."""
    if read_value(by_key.get("fp8", False), "flag") is not False:
        return "fp8"
    flags = {name: read_value(by_key[name], "flag") for name in ("fp16", "bf16") if name in by_key}
    for name, on in flags.items():
        if on:
            return name
    return "fp32" if len(flags) == 2 and not any(flags.values()) else None
