"""Muon for hidden matrices, AdamW for everything else, as one optimizer."""

from __future__ import annotations

from typing import Any

import torch


class Muon(torch.optim.Optimizer):
    """torch's Muon (Jordan et al., 2024) for groups that are `hidden`, its AdamW for the others.

    Muon's update is scaled to the root mean square of AdamW's (Liu et al., arXiv 2502.16982), so that one rate is
    right for both.

    Parameters
    ----------
    groups : list of dict
        Parameter groups with `hidden` and `weight_decay`.
    lr, momentum, betas, eps : float
        Of both, of Muon, and of AdamW.
    """

    def __init__(
        self, groups: list[dict[str, Any]], lr: float, momentum: float, betas: tuple[float, float], eps: float
    ) -> None:
        hidden = [group for group in groups if group["hidden"]]
        others = [group for group in groups if not group["hidden"]]
        self.parts: list[torch.optim.Optimizer] = []
        if hidden:
            self.parts.append(torch.optim.Muon(hidden, lr=lr, momentum=momentum, adjust_lr_fn="match_rms_adamw"))
        if others:
            self.parts.append(torch.optim.AdamW(others, lr=lr, betas=betas, eps=eps))
        super().__init__([group for part in self.parts for group in part.param_groups], {})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Make an update with each part; the groups, and so the rates, are theirs."""
        for part in self.parts:
            part.step()

    def state_dict(self) -> dict[str, Any]:
        """Return the state of each part."""
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up the state of each part."""
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self.parts for group in part.param_groups]
