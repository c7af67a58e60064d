"""Write the sample runs that the repository ships: `python tests/make_samples.py [DIR]`.

Six small logs in five formats, from seeded generators: the same bytes every time on every machine.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
import struct
import sys
from pathlib import Path

import google_crc32c
from tensorboard.compat.proto.event_pb2 import Event

SAMPLES = Path(__file__).parent / "data" / "samples"


def exploding() -> str:
    """A language-model fine-tune whose gradient norm runs away 12 reports before the loss turns NaN."""
    rng = random.Random(11)
    rows = [
        {
            "config": {
                "max_steps": 4000,
                "learning_rate": 6e-4,
                "warmup_steps": 200,
                "precision": "fp16",
                "batch_size": 8,
            }
        }
    ]
    for i in range(160):
        step = 10 * i
        lr = 6e-4 * min(1.0, step / 200)
        loss = 2.1 + 8.5 * math.exp(-step / 180) + rng.gauss(0, 0.04)
        grad = 0.8 * math.exp(rng.gauss(0, 0.18))
        past = i - 118
        if past >= 0:
            grad *= 2.2**past
            loss += 0.0 if past < 4 else 0.35 * 1.5 ** (past - 4)
        if past >= 12:
            loss = grad = math.nan
        rows.append({"step": step, "loss": _n(loss, 4), "grad_norm": _n(grad, 4), "learning_rate": lr})
    return "".join(json.dumps(r) + "\n" for r in rows)


def overfit() -> str:
    """A Keras CSVLogger of a small classifier: the validation loss turns at epoch 18."""
    rng = random.Random(12)
    out = io.StringIO()
    w = csv.writer(out)
    w.writerow(["epoch", "accuracy", "loss", "lr", "val_accuracy", "val_loss"])
    for e in range(60):
        loss = 0.04 + 1.75 * math.exp(-e / 9) * math.exp(rng.gauss(0, 0.03))
        val = 0.92 + 0.95 * math.exp(-e / 6) + 0.018 * max(0, e - 18) + rng.gauss(0, 0.012)
        w.writerow(
            [e, f"{1 - loss / 2.6:.4f}", f"{loss:.4f}", "0.001", f"{0.72 - 0.4 * math.exp(-e / 6):.4f}", f"{val:.4f}"]
        )
    return out.getvalue().replace("\r\n", "\n")


def loss_scale() -> str:
    """A DeepSpeed job on stdout: healthy for a while, then every step overflows down to the minimum scale."""
    rng = random.Random(13)
    lines = ["[2026-03-02 01:00:00,000] [INFO] [launch.py:142:main] WORLD INFO DICT: {'localhost': [0, 1]}"]
    for i in range(1, 41):
        loss = 1.2 + 1.4 * math.exp(-i / 12) + rng.gauss(0, 0.03)
        lines.append(
            f"{{'loss': {loss:.4f}, 'grad_norm': {0.9 * math.exp(rng.gauss(0, 0.2)):.4f}, "
            f"'learning_rate': {2e-5 * (1 - i / 60):.6e}, 'epoch': {i / 20:.2f}}}"
        )
    scale = 65536
    for i in range(14):
        lines.append(
            f" 13%|#3        | {401 + i}/3000 [02:1{i % 10}:00<9:00:00, 12.50s/it]"
            "[INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
            f"Attempted loss scale: {scale}, reducing to {scale // 2}"
        )
        scale //= 2
    return "\n".join(lines) + "\n"


def never_learns() -> str:
    """A Hugging Face trainer_state.json: the gradient vanishes at once, the loss stays at ln 32000."""
    rng = random.Random(14)
    history = [
        {
            "epoch": round(i / 40, 4),
            "grad_norm": _n(1.3 * math.exp(-i / 2.2) + 2e-4 * math.exp(rng.gauss(0, 0.2)), 8),
            "learning_rate": _n(5e-5 * min(1.0, i / 8), 10),
            "loss": _n(math.log(32000) + rng.gauss(0, 0.02), 4),
            "step": 5 * i,
        }
        for i in range(1, 81)
    ]
    state = {"best_metric": None, "global_step": 400, "log_history": history, "logging_steps": 5, "max_steps": 2000}
    state |= {"num_train_epochs": 10, "train_batch_size": 4}
    return json.dumps(state, indent=2) + "\n"


def spike() -> str:
    """A Megatron log of a loss spike that the gradient norm announces and that recovers."""
    rng = random.Random(15)
    lines = []
    for i in range(240):
        it = 31000 + i
        loss, grad = 2.21 + rng.gauss(0, 0.012) - i * 5e-5, 0.21 * math.exp(rng.gauss(0, 0.12))
        past = i - 150
        if 0 <= past < 30:
            grad = max(grad, 0.21 * 4.0 ** min(past + 1, 5) * math.exp(-max(0, past - 5) / 3))
            loss += 0.0 if past < 3 else 2.6 * math.exp(-(past - 3) / 6)
        lines.append(
            f"[default7]: iteration {it:8d}/  115311 | consumed samples: {it * 2048:12d} | "
            f"elapsed time per iteration (s): {105.2 + rng.gauss(0, 0.3):.2f} | learning rate: 5.279E-05 | "
            f"global batch size:  2048 | lm loss: {loss:.6E} | grad norm: {grad:.3f} | num zeros: 0.0 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |"
        )
    return "\n".join(lines) + "\n"


def healthy() -> bytes:
    """A TensorBoard event file of a healthy run: warm restarts, noise, a checkpoint pause, a validation curve."""
    rng = random.Random(16)
    out = [_record(Event(wall_time=1.77e9, file_version="brain.Event:2"))]
    time = 1.77e9
    for step in range(1, 1201):
        phase = (step % 400) / 400
        lr = 1e-3 * 0.5 * (1 + math.cos(math.pi * phase)) + 1e-6
        time += 0.4 + (30.0 if step % 300 == 0 else 0.0)
        loss = 0.6 + 1.9 * step**-0.35 + 0.06 * lr / 1e-3 + rng.gauss(0, 0.03)
        grad = 0.5 * math.exp(rng.gauss(0, 0.25)) * (1 + 0.5 * lr / 1e-3)
        for tag, value in (("train/loss", loss), ("train/grad_norm", grad), ("train/lr", lr)):
            out.append(_scalar(time, step, tag, value))
        if step % 100 == 0:
            out.append(_scalar(time, step, "val/loss", 0.66 + 1.9 * step**-0.35 + rng.gauss(0, 0.01)))
    return b"".join(out)


def _scalar(time: float, step: int, tag: str, value: float) -> bytes:
    e = Event(wall_time=time, step=step)
    e.summary.value.add(tag=tag, simple_value=value)
    return _record(e)


def _record(event: Event) -> bytes:
    data = event.SerializeToString()
    length = struct.pack("<Q", len(data))
    return length + _crc(length) + data + _crc(data)


def _crc(data: bytes) -> bytes:
    c = google_crc32c.value(data)
    return struct.pack("<I", (((c >> 15) | (c << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def _n(value: float, digits: int) -> float:
    return value if math.isnan(value) else round(value, digits)


def write(folder: Path) -> None:
    """Write all six."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nan-after-explosion.jsonl").write_text(exploding())
    (folder / "overfit.csv").write_text(overfit())
    (folder / "loss-scale-collapse.log").write_text(loss_scale())
    (folder / "never-learns.json").write_text(never_learns())
    (folder / "spike-recovers.log").write_text(spike())
    run = folder / "healthy-warm-restarts"
    run.mkdir(exist_ok=True)
    (run / "events.out.tfevents.1770000000.sample").write_bytes(healthy())


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLES)
