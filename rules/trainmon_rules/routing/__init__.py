"""From what a person types to the routing table's rows: `route("my loss is NaN")`.

`text` cuts a text into words, `phrases` finds phrases in them, `queries` knows the phrases of each row
(`data/queries.yaml` and the table's own words), `router` picks the rows and reads the answer off the table.
Nothing is guessed: a text in which no phrase is found gets the closest symptoms, not a route.
"""

from __future__ import annotations

from trainmon_rules.routing.records import Routed, Topic
from trainmon_rules.routing.router import route

__all__ = ["Routed", "Topic", "route"]
