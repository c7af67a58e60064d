"""Which files of a directory are training logs: decided cheaply, by content.

A file that a person names is always read. In a directory most files are something else (checkpoints, code,
configs, data sets), and taking one of them for a log would be a run that nobody started. So a file counts if its
first 64 KiB (1 MiB of a `.log` and the like) hold records with a step axis or a tag whose meaning is known, or if
it is longer than that and has a name that only logs have.
"""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from trainmon.discovery.eventfiles import EventFile, is_event_file, probe
from trainmon.readers import HEAD, Reader, sniff
from trainmon_rules.errors import BadInput
from trainmon_rules.roles import RoleTable

_SUFFIXES = """
    .7z .arrow .avi .bin .bmp .bz2 .c .cc .cfg .ckpt .conf .cpp .css .cu .cuh .db .dll .eps .feather .flac .gguf .gif
    .go .h .h5 .hdf5 .hpp .html .ico .ini .ipynb .java .jpeg .jpg .js .lmdb .lock .lz4 .md .mid .model .mov .mp3 .mp4
    .msgpack .npy .npz .o .ogg .onnx .orbax .ot .parquet .pb .pdf .pickle .pkl .png .ppm .pt .pth .py .pyc .rar .rs
    .rst .safetensors .sh .so .sqlite .sqlite3 .svg .tar .tflite .tfrecord .tgz .tif .tiff .toml .ts .ttf .vocab .wav
    .webm .webp .whl .xml .xz .yaml .yml .zip .zst
"""
NOT_LOGS = frozenset(_SUFFIXES.split())
"""Suffixes that no training log has; such files aren't opened."""

NOT_LOG_NAMES = re.compile(
    r"(.*[_.-])?(config|vocab|merges|tokenizer|special_tokens_map|added_tokens|args|hparams|hyper_?parameters|metadata|"
    r"dataset_infos?|package(-lock)?|index|summary|all_results|(train|eval|test|predict)_results|requirements)"
    r"\.(json|txt|csv)|conda-environment\..*|requirements.*\.txt",
    re.IGNORECASE,
)
"""Names of settings, vocabularies and final results: not the story of a run."""

LOG_SUFFIXES = (".log", ".out", ".err", ".txt")
FAR = 1 << 20  # bytes looked at in a text that begins like a log but shows no metric in its head
MLFLOW_LINE = re.compile(rb"\d{12,14} \S+( -?\d+( \S+ \S+)?)?\s*")


@dataclass(frozen=True, slots=True)
class Seen:
    """A log met in a directory: "event", "mlflow", "log", "wandb" (refused with the way out) or "unreadable"."""

    path: Path
    kind: str
    event: EventFile | None = None
    error: str = ""


def recognise(path: Path, telling: bool, roles: RoleTable) -> Seen | None:
    """Look at a file of a directory; None if it is no log (or an empty one).

    Parameters
    ----------
    path : Path
        A regular file.
    telling : bool
        It has a name that logs have, so it needn't show a record in its head.
    roles : RoleTable
        Tells the tags whose meaning is known.
    """
    if path.suffix.lower() in NOT_LOGS or NOT_LOG_NAMES.fullmatch(path.name):
        return None
    try:
        head, whole = head_of(path)
        if is_event_file(head):
            return Seen(path, "event", probe(path, head))
    except FileNotFoundError:
        return None  # it went away
    except OSError as error:
        return Seen(path, "unreadable", error=(error.strerror or str(error)).lower())
    if not head.strip():
        return None
    if path.suffix == ".wandb":
        return Seen(path, "wandb")
    if MLFLOW_LINE.fullmatch(head.split(b"\n", 1)[0]):
        return Seen(path, "mlflow")
    return Seen(path, "log") if _is_log(path, head, whole, telling, roles) else None


def head_of(path: Path, size: int = HEAD) -> tuple[bytes, bool]:
    """Return a file's first bytes, decompressed if it is gzip, and whether that is all of it; OSError if unreadable."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        data = os.read(fd, size)
        whole = len(data) < size
    finally:
        os.close(fd)
    if data[:2] != b"\x1f\x8b":
        return data, whole
    inflate = zlib.decompressobj(wbits=31)
    out, pending = b"", data
    try:
        while pending and len(out) < size and (piece := inflate.decompress(pending, 1024)):
            out += piece
            pending = inflate.unconsumed_tail
    except zlib.error:
        if not out:
            raise OSError(0, "broken gzip data") from None
    return out, whole and inflate.eof


def _is_log(path: Path, head: bytes, whole: bool, telling: bool, roles: RoleTable) -> bool:
    if b"\0" in head[:4096]:
        return False
    try:
        if _speaks(sniff(path.name, head), head, whole, roles):
            return True
        if telling:  # its records may begin late; final scores in one row are no story
            return not whole
        if whole or path.suffix.lower() not in LOG_SUFFIXES:
            return _is_long_document(head, whole)
        far, whole = head_of(path, FAR)  # scripts that print themselves before the first metric
        return _speaks(sniff(path.name, head), far, whole, roles)
    except (BadInput, OSError):
        return False


def _speaks(reader: Reader, head: bytes, whole: bool, roles: RoleTable) -> bool:
    """Whether records with a step axis, or with a tag of a known meaning, come out."""
    batch = reader.feed(head)
    tags = {c.tag: len(c) for c in batch.chunks}
    if whole:
        for c in reader.finish().chunks:
            tags[c.tag] = tags.get(c.tag, 0) + len(c)
    if not tags:
        return False
    if reader.axis not in ("row", ""):
        return True
    # A single row without an axis is a table of settings or results, whatever its keys are called.
    return max(tags.values()) > 1 and any(roles.assign(tag, tags) for tag in tags)


def _is_long_document(head: bytes, whole: bool) -> bool:
    """A JSON document too long to be seen whole: a trainer's history, or columns of numbers by step."""
    return not whole and head.lstrip()[:1] in b"{[" and bool(_DOCUMENT.search(head))


_DOCUMENT = re.compile(rb'"log_history"|"(step|global_step|iteration|iter|epoch|[a-z_]*loss)"\s*:\s*(\[\s*)?-?[0-9]')
