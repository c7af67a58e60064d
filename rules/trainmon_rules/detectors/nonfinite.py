"""nonfinite: NaN or infinity where a number should be.

What it detects: a loss, validation loss or gradient norm that is NaN or infinite; and the trace that
Hugging Face's Trainer leaves when it hides NaN (`logging_nan_inf_filter`): a loss of exactly 0.0, or exactly
repeated, while the gradient norm isn't finite.

Why it matters: from the first non-finite update on, every weight may be NaN and every later step is wasted.

Example: `{"step": 900, "loss": NaN}`. The first such loss is a warning at once; the third report in a row, a non-finite
gradient norm beside it, or half of the last twenty reports makes it critical. A validation loss alone stays a warning.

When it is wrong: an fp16 loss scaler makes single gradient norms infinite by design, and skips those steps. A
lone non-finite gradient norm beside a finite loss is therefore silent where a loss scale is logged (fewer than
25 in a row) and needs three in a row elsewhere. One that is 0 again is not over where no other number has been
finite: nothing is trained there. NaN in a side metric is not looked at.

Fixes: find the first bad step (`torch.autograd.set_detect_anomaly`), clip the gradient norm, lower the rate,
look at the batch, check log(0) and division by zero in the loss.

Source: Lightning Fabric's `SpikeDetection(finite_only=True)`, KempnerForge's run-length grading; the Hugging
Face artefact is described in huggingface/trl#6702 and transformers#13619.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trainmon_rules.detectors.base import Detector, Peer, Rule, resolved
from trainmon_rules.findings import Finding, Severity
from trainmon_rules.incidents import HELD_OUT
from trainmon_rules.series import Block, Series
from trainmon_rules.strict import strict
from trainmon_rules.vocabulary import RunSettings


class NonFinite(Detector):
    """Counts consecutive non-finite reports; grades by run length and by the gradient beside the loss."""

    name: ClassVar[str] = "nonfinite"

    @dataclass(frozen=True, slots=True)
    class Params:
        """Run lengths.

        `critical_after` reports in a row make it critical, and `half` of the last `among`; `grad_in_a_row` and
        `grad_in_a_row_scaled` say how many non-finite gradient norms are worth a word, without and with a loss scaler;
        `recover` finite reports end it.
        """

        critical_after: int = 3
        half: float = 0.5
        among: int = 20
        grad_in_a_row: int = 3
        grad_in_a_row_scaled: int = 25
        recover: int = 1

    params: Params

    def __init__(self, rule: Rule, series: Series, peer: Peer, settings: RunSettings) -> None:
        super().__init__(rule, series, peer, settings)
        self.run = 0
        self.finite = 0
        self.recent: deque[bool] = deque([False] * self.params.among, maxlen=self.params.among)  # which weren't finite
        self.total = 0
        self.zeros = 0  # finite reports so far, while all of them are exactly 0
        self.alive = False  # a finite value other than 0 has been seen
        self.masked = 0
        self.hidden = 0  # reports in all beside a loss that hides it
        self.onset: tuple[int, float] = (0, float("nan"))
        self.open: Finding | None = None
        self.last_loss: float | None = None

    def update(self, block: Block) -> Iterable[Finding]:
        """Yield a finding for each run of non-finite reports."""
        bad = ~np.isfinite(block.value)
        if self.alive and not bad.any() and self.run == 0 and self.open is None:
            if any(self.recent):
                self.recent.extend([False] * min(len(bad), self.params.among))
            return ()
        return self._scan(block, bad.tolist())

    def _scan(self, block: Block, bad: list[bool]) -> Iterator[Finding]:
        for i, is_bad in enumerate(bad):
            self.recent.append(is_bad)
            if not is_bad:
                if self.open is not None and self._is_still_dead(float(block.value[i])):
                    continue
                self.run = self.masked = 0
                self.zeros += 1
                self.alive = self.alive or block.value[i] != 0.0
                if self.open is not None:
                    self.finite += 1
                    if self.finite >= self.params.recover:
                        step = int(block.step[i])
                        yield resolved(self.open, step, f"finite again at step {step}")
                        self.open = None
                continue
            self.finite = 0
            self.run += 1
            self.total += 1
            if self.run == 1:
                self.onset = (int(block.step[i]), float(block.time[i]))
            found = self._judge(block, i)
            if found is not None:
                self.open = found
                yield found

    def _is_still_dead(self, value: float) -> bool:
        """Whether a gradient norm of exactly 0 follows where none but 0 has been finite: that is no recovery."""
        return self.series.role == "grad_norm" and value == 0.0 and not self.alive

    def _judge(self, block: Block, i: int) -> Finding | None:
        if self.series.role == "grad_norm":
            return self._judge_gradient(block, i)
        gradient = self.peer("grad_norm", block, i, 1).value
        gradient_too = len(gradient) == 1 and not np.isfinite(gradient[0])
        critical = self.series.role not in HELD_OUT and (
            self.run >= self.params.critical_after or gradient_too or self._often()
        )
        return self._open_or_raise(block, i, critical, bool(gradient_too))

    def _often(self) -> bool:
        """Whether half of the last reports were not finite: hardly an update counts."""
        return sum(self.recent) >= self.params.half * self.params.among

    def _judge_gradient(self, block: Block, i: int) -> Finding | None:
        masked = self._loss_is_masked(block, i)
        self.masked = self.masked + 1 if masked else 0
        self.hidden += masked
        scaled = len(self.peer("loss_scale", block, i, 1)) > 0
        needed = self.params.grad_in_a_row_scaled if scaled else self.params.grad_in_a_row
        if not scaled and not self.alive and self.zeros >= 2:  # nothing but exact zeros, then this: no update is alive
            return self._open_or_raise(block, i, True, False)
        if self.open is None and not masked and self.run < needed:
            return None
        return self._open_or_raise(block, i, self.masked >= 2 or self.hidden >= self.params.critical_after, False)

    def _loss_is_masked(self, block: Block, i: int) -> bool:
        """A loss of exactly 0.0, or the same to the last digit as before, beside a non-finite gradient."""
        last = self.peer("train_loss", block, i, 2).value
        if not len(last) or not np.isfinite(last[-1]):
            return False
        return bool(last[-1] == 0.0 or (len(last) == 2 and last[0] == last[1]))

    def _open_or_raise(self, block: Block, i: int, critical: bool, gradient_too: bool) -> Finding | None:
        severity = Severity.CRITICAL if critical else Severity.WARNING
        value = float(block.value[i])
        if self.open is not None:
            if severity > self.open.severity or self.run in (10, 100, 1000):
                return self._grow(self.open, block, i, max(severity, self.open.severity))
            self.open = self.open.changed(last_step=int(block.step[i]))
            return None
        evidence: dict[str, Any] = {
            "value": strict(value),
            "first bad step": self.onset[0],
            "reports in a row": self.run,
        }
        if gradient_too:
            evidence["gradient norm"] = "not finite either"
        if self.masked:
            evidence["loss beside it"] = float(self.peer("train_loss", block, i, 1).value[-1])
        return self.finding(block, i, self._summary(), evidence, self.onset[0], self.onset[1], severity)

    def standing(self) -> Finding | None:
        """Return the run of non-finite reports that goes on, with its length."""
        found = self.open
        if found is None:
            return None
        return found.changed(evidence={**found.evidence, "reports in a row": self.run}, summary=self._summary())

    def _grow(self, found: Finding, block: Block, i: int, severity: Severity) -> Finding:
        evidence = {**found.evidence, "reports in a row": self.run}
        step = int(block.step[i])
        return found.changed(severity=severity, last_step=step, evidence=evidence, summary=self._summary())

    def _summary(self) -> str:
        step = self.onset[0]
        if self.masked:
            return (
                f"{self.series.tag} is not finite from step {step} while the logged loss is exactly 0 or frozen: "
                "the trainer hides the NaN loss"
            )
        many = f", {self.run} reports in a row" if self.run > 1 else ""
        if self.series.role != "grad_norm" and self.run < self.params.critical_after and self._often():
            many = f" again: {sum(self.recent)} of the last {self.params.among} reports are not"
        return f"{self.series.tag} is not finite from step {step}{many}"
