"""What a tag means: the role table (`roles`), its file (`rolefile`), and how names are compared (`tags`)."""

from __future__ import annotations

from trainmon_rules.roles.roles import RoleTable

__all__ = ["RoleTable"]
