"""`trainmon evaluate DIR`: traces with a known truth, replayed by the engine and by the peers' rules, and scored.

`traces` reads a folder: log and truth; `judging` says of one run what was a hit and what a false alarm; `intervals`
knows the 95 % intervals; `scoring` adds up a half; `evaluate` is all of it. What comes out are the records of
`trainmon_rules.evaluation`. Only `traces` and `scoring` know the reference package (its truths and peers), which is
imported without torch.
"""

from __future__ import annotations

from trainmon.evaluating.evaluate import HALVES, evaluate

__all__ = ["HALVES", "evaluate"]
