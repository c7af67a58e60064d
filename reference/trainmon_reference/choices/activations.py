"""Activation functions by name: torch's own."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from trainmon_reference.choices.named import chosen

ACTIVATIONS: Mapping[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "leaky-relu": nn.LeakyReLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
}


def build_activation(name: str) -> nn.Module:
    """Return an activation function as a module; BadConfig if its name isn't known."""
    return chosen("activation", name, ACTIVATIONS)()
