"""From a path to runs: which files tell one story.

`runs` is the door; `directories` searches, with `folders`, `eventfiles` and `recognise`; `specs` are the records.
"""
