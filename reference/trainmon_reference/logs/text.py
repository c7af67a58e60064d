"""Log text as frameworks print it: Megatron-LM, fairseq (`--log-format json`), OpenMMLab (mmengine).

Digits are as few as the framework prints (Megatron's gradient norm has three decimals), wall times are whole seconds.
Settings are printed in forms that no reader takes up (Megatron's dotted list, fairseq's and mmengine's configs), so
they are left out, but for the planned steps that Megatron and mmengine print on each line. A resumed job prints on into
the same file.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from trainmon_reference.logs.base import Writer, stamp
from trainmon_reference.record import Record


class Text(Writer):
    """Writer of `train.log`."""

    def begin(self) -> None:
        """Open the file."""
        self._file = (self.folder / "train.log").open("w", encoding="utf-8")

    def write(self, record: Record) -> None:
        """Write the lines of one record."""
        self._file.writelines(line + "\n" for line in self.lines(record, self.framework.tags(record)))

    @abstractmethod
    def lines(self, record: Record, tags: dict[str, float]) -> Iterable[str]:
        """Yield the lines of a record whose numbers stand in `tags`, by the framework's names."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Megatron(Text):
    """Lines of `training_log` and `evaluate_and_print_results` in Megatron-LM's `training.py`.

    A loss is printed only where its mean is above zero, so a NaN is left out; the line counts it.
    """

    _forms: ClassVar = {"learning rate": ".6E", "lm loss": ".6E", "loss scale": ".1f"}

    def lines(self, record: Record, tags: dict[str, float]) -> Iterable[str]:
        """Yield the line of a report, or the three of an evaluation."""
        if record.phase == "valid":
            text = f" validation loss at iteration {record.step} | "
            text += "".join(f"{name}: {value:.6E} | " for name, value in tags.items())
            return ["-" * len(text), text, "-" * len(text)]
        lost = tags.get("lm loss", 1.0)
        head = stamp(record.seconds, " [%Y-%m-%d %H:%M:%S]") + f" iteration {record.step:8d}/{self.total:8d} |"
        parts = [head]
        for name, value in tags.items():
            if name != "lm loss" or value > 0.0:
                parts.append(f" {name}: {value:{self._forms.get(name, '.3f')}} |")
        parts.append(f" number of skipped iterations:   0 | number of nan iterations: {int(math.isnan(lost)):3d} |")
        return ["".join(parts)]


class Fairseq(Text):
    """Lines of `JsonProgressBar` in fairseq's `progress_bar.py`; numbers are strings there."""

    _rounds: ClassVar = {"loss": 3, "gnorm": 3, "loss_scale": 4, "wps": 1, "valid_loss": 3}

    def lines(self, record: Record, tags: dict[str, float]) -> Iterable[str]:
        """Yield one line; epochs count from 1, the losses are not turned into bits."""
        row: dict[str, object] = {"epoch": int(record.epoch) + 1}
        numbers = {name: f"{round(value, self._rounds.get(name, 12)):g}" for name, value in tags.items()}
        if record.phase == "train":
            row |= {"update": round(record.epoch, 3), **numbers, "num_updates": str(record.step)}
        else:
            row |= {**numbers, "valid_num_updates": str(record.step)}
        name = "train_inner" if record.phase == "train" else "valid"
        return [f"{stamp(record.seconds, '%Y-%m-%d %H:%M:%S')} | INFO | {name} | {json.dumps(row)}"]


class OpenMMLab(Text):
    """Lines of mmengine's `LogProcessor` for a loop by iterations."""

    def lines(self, record: Record, tags: dict[str, float]) -> Iterable[str]:
        """Yield one line."""
        parts = [f"{name}: {value:{'.4e' if name == 'lr' else '.4f'}}" for name, value in tags.items()]
        head = f"{stamp(record.seconds, '%Y/%m/%d %H:%M:%S')} - mmengine - INFO - "
        if record.phase == "valid":
            return [f"{head}Iter(val) [1/1]    {'  '.join(parts)}"]
        width = len(str(self.total))
        return [f"{head}Iter(train) [{record.step:>{width}}/{self.total}]  {'  '.join(parts)}"]
