"""`trainmon evaluate DIR`: traces with a known truth, replayed by the engine and by the peers' rules, and scored.

`traces` reads a folder (log and truth), `logs` counts its steps on over attempts, `alarms` puts incidents and alarms of
the peers in one form, `judging` says of one run what was a hit and what a false alarm, `intervals` knows the 95 %
intervals, `scoring` adds up, `contest` holds the peers beside us, `telling` lists run by run; `evaluation` is all of
it. What comes out are the records of `trainmon_rules.evaluation`. The reference package (truths, peers) is imported
here only, and without torch.
"""

from __future__ import annotations

from trainmon.evaluating.evaluation import HALVES, evaluate

__all__ = ["HALVES", "evaluate"]
