"""Activations, seen through hooks: the share of dead units, and the scale."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

ACTIVATIONS = (nn.ReLU, nn.LeakyReLU, nn.GELU, nn.Tanh, nn.Sigmoid, nn.SiLU)


def _units(output: Tensor) -> Tensor:
    """Return an output with its units last: channels stand second in an image, features last elsewhere."""
    return output.movedim(1, -1) if output.ndim == 4 else output


class Probe:
    """Reads what the activation functions of a model gave in the last forward pass.

    Parameters
    ----------
    model : nn.Module
        Its modules of the kinds in `ACTIVATIONS` are looked at.
    """

    def __init__(self, model: nn.Module) -> None:
        self._last: dict[int, Tensor] = {}
        for number, module in enumerate(m for m in model.modules() if isinstance(m, ACTIVATIONS)):
            module.register_forward_hook(self._hook(number))

    def _hook(self, number: int) -> Callable[[nn.Module, object, Tensor], None]:
        def keep(_module: nn.Module, _inputs: object, output: Tensor) -> None:
            self._last[number] = output.detach()

        return keep

    def read(self) -> dict[str, float]:
        """Return `dead_units` (share of units that were 0 for the whole batch) and `activation_scale` (RMS)."""
        if not self._last:
            return {}
        dead = [(_units(out).flatten(0, -2) == 0).all(0).float().mean() for out in self._last.values()]
        scale = [out.float().square().mean().sqrt() for out in self._last.values()]
        return {
            "dead_units": float(torch.stack(dead).mean()),
            "activation_scale": float(torch.stack(scale).max()),
        }
