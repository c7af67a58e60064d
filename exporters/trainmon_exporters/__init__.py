"""Everything that leaves: each exporter only formats a `Report` (or an incident); nothing here decides.

`FORMATS` names the report formats of `trainmon replay --format`.
"""
