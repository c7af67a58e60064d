"""Two runs side by side: where their series part, which settings and incidents they don't share.

`subject` is what is kept of a run for it, `parting` the statistics of two courses, `quantities` which ones are looked
at and from which difference on it matters, `compare` puts it together.
"""

from __future__ import annotations

from trainmon_rules.comparison.compare import compare
from trainmon_rules.comparison.quantities import COMPARED
from trainmon_rules.comparison.subject import Subject

__all__ = ["COMPARED", "Subject", "compare"]
