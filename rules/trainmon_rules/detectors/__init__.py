"""Statistical detectors, one a file. `DETECTORS` names them; a rule refers to one by its name.

`base` says what a detector is. To add one: write the file, add the class to `ALL`, give it a rule in
`data/rules.yaml` and a test under `tests/rules/detectors`.
"""

from __future__ import annotations

from trainmon_rules.detectors.activation_scale import ActivationScale
from trainmon_rules.detectors.attention_range import AttentionRange
from trainmon_rules.detectors.base import Detector, Rule
from trainmon_rules.detectors.chance import ChanceAccuracy
from trainmon_rules.detectors.dead_units import DeadUnits
from trainmon_rules.detectors.displacement import Displacement
from trainmon_rules.detectors.divergence import Divergence, ValDivergence
from trainmon_rules.detectors.flat import Flat
from trainmon_rules.detectors.frozen import FrozenLoss
from trainmon_rules.detectors.grad_explosion import GradExplosion
from trainmon_rules.detectors.grad_growth import GradGrowth
from trainmon_rules.detectors.grad_spike import GradSpike
from trainmon_rules.detectors.grad_start import GradStart
from trainmon_rules.detectors.grad_vanishing import GradVanishing
from trainmon_rules.detectors.loss_scale import LossScaleCollapse
from trainmon_rules.detectors.loss_spike import LossSpike
from trainmon_rules.detectors.low_utilization import LowUtilization
from trainmon_rules.detectors.lr_declared import LrDeclared
from trainmon_rules.detectors.lr_jump import LrJump
from trainmon_rules.detectors.lr_resume import LrResume
from trainmon_rules.detectors.lr_warmup import LrWarmup
from trainmon_rules.detectors.lr_zero import LrZero
from trainmon_rules.detectors.memory_growth import MemoryGrowth
from trainmon_rules.detectors.nonfinite import NonFinite
from trainmon_rules.detectors.oscillation import Oscillation
from trainmon_rules.detectors.overfit import Overfit
from trainmon_rules.detectors.periodic import Periodic
from trainmon_rules.detectors.periodic_stall import PeriodicStall
from trainmon_rules.detectors.plateau import Plateau
from trainmon_rules.detectors.policy_kl import PolicyKl
from trainmon_rules.detectors.policy_limit import PolicyLimit
from trainmon_rules.detectors.preference_margin import PreferenceMargin
from trainmon_rules.detectors.regime_shift import RegimeShift, ValRegimeShift
from trainmon_rules.detectors.resume_jump import ResumeJump
from trainmon_rules.detectors.slow import Slow
from trainmon_rules.detectors.stall import Stall
from trainmon_rules.detectors.throughput_drop import ThroughputDrop
from trainmon_rules.detectors.val_oscillation import ValOscillation
from trainmon_rules.detectors.val_suspect import ValSuspect

ALL: tuple[type[Detector], ...] = (
    NonFinite,
    LossScaleCollapse,
    GradStart,
    GradExplosion,
    GradGrowth,
    GradSpike,
    LossSpike,
    Divergence,
    ValDivergence,
    RegimeShift,
    ValRegimeShift,
    Oscillation,
    ValOscillation,
    Flat,
    FrozenLoss,
    Plateau,
    Slow,
    Periodic,
    Overfit,
    GradVanishing,
    ChanceAccuracy,
    ValSuspect,
    DeadUnits,
    ActivationScale,
    AttentionRange,
    PreferenceMargin,
    Displacement,
    PolicyKl,
    PolicyLimit,
    ThroughputDrop,
    Stall,
    PeriodicStall,
    LowUtilization,
    MemoryGrowth,
    LrZero,
    LrJump,
    LrWarmup,
    LrDeclared,
    LrResume,
    ResumeJump,
)


def _by_name(classes: tuple[type[Detector], ...]) -> dict[str, type[Detector]]:
    table: dict[str, type[Detector]] = {}
    for cls in classes:
        if cls.name in table:
            raise ValueError(f"two detectors are called {cls.name!r}")
        table[cls.name] = cls
    return table


DETECTORS = _by_name(ALL)

__all__ = ["ALL", "DETECTORS", "Detector", "Rule"]
