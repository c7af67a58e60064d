"""The thinking: what a tag means, what is wrong, why, and what to do first.

Nothing in here opens a log, a socket or a clock. Points come in as arrays (`points`), are told apart into
attempts (`attempts`), given a role (`roles`), kept with their robust statistics (`series`), judged by
detectors (`detectors`), grouped into incidents (`incidents`) and explained (`diagnosis`) into a `report`.
The `engine` is the one way through.
"""
