"""Why it happened and what to do: the routing table as data, and its questions answered from the run.

Facts (`facts`, with `signals`, `rates`, `reinforcement`, `lookback`) are held against the knowledge (`knowledge`,
`table`, `entries`, `asking`, `conditions`) by `diagnose`; `routes` puts the routes together, `fixes` gives the changes
in the one `vocabulary`; `checklists` are lists to go through; `manual` prints what is known under a name.
"""

from __future__ import annotations

from trainmon_rules.diagnosis.diagnose import Diagnosis, Knowledge, diagnose

__all__ = ["Diagnosis", "Knowledge", "diagnose"]
