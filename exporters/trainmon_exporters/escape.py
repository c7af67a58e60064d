"""Making names and texts from logs safe to show: what a log says never steers a terminal, a table or a page.

A tag may hold anything: ANSI sequences, newlines, right-to-left overrides, rich markup, HTML. `clean` makes
the invisible visible; `markdown` and `code` do what a Markdown page needs on top of that.
"""

from __future__ import annotations

import re
import unicodedata

_JOINERS = "\u200c\u200d"  # belong to Persian and Indic spelling; harmless
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}
_ASCII = str.maketrans(
    {
        "×": "x", "–": "-", "—": "--", "−": "-", "‑": "-", "…": "...", "→": "->", "←": "<-", "≥": ">=", "≤": "<=",
        "≈": "~", "±": "+/-", "·": "*", "σ": "sigma", "μ": "mu", "µ": "u", "β": "beta", "ε": "eps", "∞": "inf",
        "“": '"', "”": '"', "‘": "'", "’": "'", "√": "sqrt", "²": "^2", "½": "1/2", "°": " deg", "\u00a0": " ",
    }
)  # fmt: skip
"""How our own typography is spelt where only ASCII is safe."""


def clean(text: object, limit: int = 0) -> str:
    """Return the text with every control, format and line-breaking character spelt out.

    Parameters
    ----------
    text : object
        Anything; its `str` is taken.
    limit : int
        Longest result in characters (the middle is cut out); 0 for no limit.
    """
    raw = str(text)
    out = raw if raw.isascii() and raw.isprintable() else "".join(map(_visible, raw))
    if limit and len(out) > limit:
        half = (limit - 3) // 2
        out = out[: limit - 3 - half] + "..." + out[len(out) - half :]
    return out


def _visible(ch: str) -> str:
    if ch in _NAMED:
        return _NAMED[ch]
    if ch in _JOINERS or unicodedata.category(ch) not in _UNSAFE:
        return ch
    code = ord(ch)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plain(text: str) -> str:
    """Return the text with arrows, dashes and the like spelt in ASCII; other letters stay."""
    return text if text.isascii() else text.translate(_ASCII)


_MARKS = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_")  # an underscore after a letter begins nothing
_LEADING = re.compile(r"^(?:[#=]|[+-](?=\s|-|$)|\d+(?=[.)](?:\s|$)))")


def markdown(text: object, limit: int = 0) -> str:
    """Return the text as inert Markdown: no emphasis, links, tables, HTML, mentions or issue references."""
    out = re.sub(r"(?<=\s)->(?=\s)", "→", clean(text, limit).strip())  # an escaped arrow is hard to read elsewhere
    out = out.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    out = _MARKS.sub(lambda m: "\\" + m.group(), out)
    out = re.sub(r"#(?=\d)", "&#35;", out).replace("@", "&#64;")
    found = _LEADING.match(out)
    if not found:
        return out
    lead = found.group()
    return f"{lead}\\{out[len(lead) :]}" if lead.isdigit() else "\\" + out


def code(text: object, limit: int = 0, cell: bool = False) -> str:
    """Return the text as a Markdown code span that its own backticks can't end; `cell` for inside a table."""
    out = clean(text, limit)
    fence = "`" * (max((len(run) for run in re.findall("`+", out)), default=0) + 1)
    if "`" in out or not out.strip():
        out = f" {out} "
    if cell:
        out = out.replace("|", "\\|")
    return fence + out + fence
