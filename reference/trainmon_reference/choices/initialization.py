"""Initialisations of weight matrices by name: torch's own, and one that is bad on purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from trainmon_reference.choices.named import chosen

INITIALIZATIONS: Mapping[str, Callable[[Tensor], object]] = {
    "xavier-uniform": nn.init.xavier_uniform_,
    "xavier-normal": nn.init.xavier_normal_,
    "kaiming-uniform": lambda weight: nn.init.kaiming_uniform_(weight, nonlinearity="relu"),
    "kaiming-normal": lambda weight: nn.init.kaiming_normal_(weight, nonlinearity="relu"),
    "orthogonal": nn.init.orthogonal_,
    "zero": nn.init.zeros_,
    "large": nn.init.normal_,
}
"""`large` is N(0, 1) whatever the fan-in: a layer of n inputs scales its signal by √n. `zero` is meant for biases; all
weights at zero never part."""

ALSO = {"he": "kaiming-normal", "xavier": "xavier-uniform", "glorot": "xavier-uniform"}
"""Other names in use; `he` is what a fix asks for."""


@torch.no_grad()
def initialize(model: nn.Module, name: str) -> None:
    """Draw the weights of linear, convolutional and recurrent layers anew; "" leaves them as their layers drew them.

    Embeddings, biases and normalisations stay. BadConfig if the name isn't known.
    """
    if not name:
        return
    fill = chosen("initialization", ALSO.get(name, name), INITIALIZATIONS)
    for module in model.modules():
        if not isinstance(module, nn.Embedding):
            for weight in module.parameters(recurse=False):
                if weight.ndim > 1:
                    fill(weight)
