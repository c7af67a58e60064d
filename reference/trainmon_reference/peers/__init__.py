"""The peers: what others alarm at, re-implemented by their published rules with their published parameters.

Each reads the numbers that a log holds, as trainmon does; inside a training job they would see every step. State
is kept over a resume. No torch.
"""

from __future__ import annotations

from trainmon_reference.peers.base import Alarm, LoggedRun, Peer, Points
from trainmon_reference.peers.callbacks import EarlyStopping, ReduceLROnPlateau, TerminateOnNaN
from trainmon_reference.peers.marin import TrainingLossSpike
from trainmon_reference.peers.sagemaker import LossNotDecreasing, Overfit, StalledTraining, VanishingGradient
from trainmon_reference.peers.spikes import FabricSpike, KillLossSpike, StabilityMonitor
from trainmon_reference.peers.trackers import RisingZScore, ZScore

PEERS: tuple[Peer, ...] = (
    ZScore(), RisingZScore(), StabilityMonitor(), KillLossSpike(), FabricSpike(), EarlyStopping(), TerminateOnNaN(),
    ReduceLROnPlateau(), LossNotDecreasing(), Overfit(), VanishingGradient(), StalledTraining(), TrainingLossSpike(),
)  # fmt: skip

__all__ = [
    "PEERS", "Alarm", "EarlyStopping", "FabricSpike", "KillLossSpike", "LoggedRun", "LossNotDecreasing", "Overfit",
    "Peer", "Points", "ReduceLROnPlateau", "RisingZScore", "StabilityMonitor", "StalledTraining", "TerminateOnNaN",
    "TrainingLossSpike", "VanishingGradient", "ZScore",
]  # fmt: skip
