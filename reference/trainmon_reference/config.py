"""One frozen record says all of a run, in the vocabulary in which a fix states its change."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainmon_rules.errors import BadConfig


@dataclass(frozen=True, slots=True)
class RunConfig:
    """All that makes a run, but for what goes wrong in it.

    Names that `trainmon explain settings` lists mean the same here, so that the `change` of a fix can be applied by
    `changed`. 0 turns off what can be off. Steps are updates of the weights.

    Attributes
    ----------
    task : str
        What is learnt: a name in `tasks.TASKS`.
    seed : int
        Of weights, data order and noise.
    total_steps : int
        Updates planned; schedules end there.
    batch_size, accumulate_grad_batches : int
        Examples a micro-batch, and micro-batches an update.
    normalize_accumulation : bool
        Divide the loss by the number of micro-batches.
    dataset_size : int
        Training examples used; 0 is all of the task's.
    num_classes : int
        Classes of a generated classification; 0 is the task's own number.
    imbalance : float
        Part of the examples that are of the first class; 0 is equal parts.
    length : int
        Steps of a sequence; 0 is the task's own.
    shuffle : bool
        Draw the examples in a new order each epoch.
    augmentation : str
        `none`, `light` or `strong`: noise, shifts and flips as the task knows them.
    mixup, cutmix : float
        Concentration of the Beta distribution that mixes two examples (0.2 and 1 are usual).
    skip_batches : int
        Batches left out at the (re)start.
    width, depth : int
        Of the model: units a layer, layers.
    activation, initialization, normalization : str
        Names in `choices`; "" is the task's own.
    cell : str
        Of a recurrent model: `rnn`, `lstm` or `gru`; "" is the task's own.
    residual : bool
        Add a block's input to its output.
    dropout, drop_path : float
        Part of the activations, or of the residual blocks, zeroed while training.
    qk_norm : bool
        Normalise queries and keys of the attention.
    logit_soft_cap : float
        Cap on logits: cap × tanh(logits / cap).
    loss_function : str
        A name in `choices.losses.LOSSES`; "" is the task's own.
    label_smoothing : float
        Part of the target given to the other classes.
    preference_beta : float
        β of DPO.
    optimizer : str
        A name in `choices.optimizers.OPTIMIZERS`.
    learning_rate, min_learning_rate : float
        Peak of the schedule, and its end.
    momentum, beta1, beta2, epsilon : float
        Of the optimizers that have them.
    weight_decay, l1, l2 : float
        Decay, decoupled where the optimizer has it so; penalties on the loss (both are the elastic net).
    lr_schedule : str
        A name in `choices.schedules.SCHEDULES`.
    warmup_steps : int
        Steps of the warm-up; 0 is none (`one-cycle`: its own).
    decay_steps : int
        Step at which the rate has come down; 0 is the last.
    phase_steps : int
        Steps of a `wsd`'s decay, of a `step`'s stairs, of a `restarts`' first cycle; 0 is the schedule's own.
    max_grad_norm, clip_value : float
        Clip gradients by global norm, and by value.
    precision : str
        `fp32`, `bf16` or `fp16`; autocast, and for fp16 a loss scaler.
    loss_scale, loss_scale_window : float, int
        Of the scaler: where it starts, and good steps until it doubles.
    eval_steps, early_stopping : int
        Updates between evaluations; evaluations without improvement after which the run stops.
    save_steps : int
        Updates between checkpoints.
    max_loss : float
        Fail fast above this loss.
    num_workers : int
        Processes that load data: what a simulated loader's speed depends on.
    """

    task: str = "text"
    seed: int = 0
    total_steps: int = 400
    batch_size: int = 32
    accumulate_grad_batches: int = 1
    normalize_accumulation: bool = True
    dataset_size: int = 0
    num_classes: int = 0
    imbalance: float = 0.0
    length: int = 0
    shuffle: bool = True
    augmentation: str = "none"
    mixup: float = 0.0
    cutmix: float = 0.0
    skip_batches: int = 0
    width: int = 32
    depth: int = 2
    activation: str = ""
    initialization: str = ""
    normalization: str = ""
    cell: str = ""
    residual: bool = True
    dropout: float = 0.0
    drop_path: float = 0.0
    qk_norm: bool = False
    logit_soft_cap: float = 0.0
    loss_function: str = ""
    label_smoothing: float = 0.0
    preference_beta: float = 0.1
    optimizer: str = "adamw"
    learning_rate: float = 3e-3
    min_learning_rate: float = 0.0
    momentum: float = 0.9
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    l1: float = 0.0
    l2: float = 0.0
    lr_schedule: str = "constant"
    warmup_steps: int = 0
    decay_steps: int = 0
    phase_steps: int = 0
    max_grad_norm: float = 0.0
    clip_value: float = 0.0
    precision: str = "fp32"
    loss_scale: float = 65536.0
    loss_scale_window: int = 200
    eval_steps: int = 0
    early_stopping: int = 0
    save_steps: int = 0
    max_loss: float = 0.0
    num_workers: int = 2

    def changed(self, change: Mapping[str, Any]) -> RunConfig:
        """Return this config with the settings of a fix's `change`.

        Raises
        ------
        BadConfig
            If a setting isn't one of a run here, or its value is of another kind.
        """
        kinds = {field.name: type(getattr(self, field.name)) for field in dataclasses.fields(self)}
        unknown = sorted(set(change) - set(kinds))
        if unknown:
            raise BadConfig(f"a reference run has no setting {unknown[0]!r}; it has: {', '.join(sorted(kinds))}")
        return dataclasses.replace(self, **{key: _of_kind(key, value, kinds[key]) for key, value in change.items()})


def _of_kind(key: str, value: Any, kind: type) -> Any:
    if kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BadConfig(f"{key}: {value!r} is no {kind.__name__}")
    return value
