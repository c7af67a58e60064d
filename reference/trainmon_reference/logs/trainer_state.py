"""Hugging Face's `trainer_state.json`: one document with `log_history`, in TRL's names too.

It holds no wall time, and of the settings only those that belong to the trainer's state (`max_steps`,
`train_batch_size`, `eval_steps`, `save_steps`); the others stand in `training_args.bin`, a pickle. A resumed job takes
the history from its checkpoint, so what was logged after that is gone, and a resume can't be told from the file. NaN is
written as with `logging_nan_inf_filter=False`; by default the Trainer hides a loss that isn't finite.
"""

from __future__ import annotations

import json
from typing import Any

from trainmon_reference.logs.base import Writer
from trainmon_reference.record import Record


class TrainerState(Writer):
    """Writer of `trainer_state.json`."""

    def begin(self) -> None:
        """Hold the history: the document is written in one piece."""
        self._history: list[dict[str, Any]] = []
        self._last = Record(0, 0.0, 0.0, "train")

    def write(self, record: Record) -> None:
        """Write one record."""
        self._last = record
        entry = {"epoch": record.epoch, **self.framework.tags(record), "step": record.step}
        if "loss" in entry:
            entry["loss"] = round(entry["loss"], 4)  # as the Trainer does
        self._history.append(entry)

    def resume(self, step: int) -> None:
        """Go back to the history that the checkpoint holds."""
        self._history = [entry for entry in self._history if entry["step"] <= step]

    def close(self) -> None:
        """Write the document, with the closing line of a training that came to its end."""
        last = self._last
        if self.total and last.step >= self.total:
            losses = [entry["loss"] for entry in self._history if "loss" in entry]
            speed = {"train_steps_per_second": round(last.step / max(last.seconds, 1e-9), 3)}
            end = {"train_loss": sum(losses) / max(1, len(losses)), "train_runtime": round(last.seconds, 4), **speed}
            self._history.append({"epoch": last.epoch, "step": last.step, "total_flos": 0.0, **end})
        state = {"best_metric": None, "best_model_checkpoint": None, "epoch": last.epoch, "global_step": last.step}
        state |= {
            "is_local_process_zero": True,
            "is_world_process_zero": True,
            "max_steps": self.total,
            **self.settings,
        }
        text = json.dumps({**state, "log_history": self._history}, indent=2, sort_keys=True)
        (self.folder / "trainer_state.json").write_text(text + "\n", encoding="utf-8")
