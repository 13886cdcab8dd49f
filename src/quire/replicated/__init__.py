"""Replicated objects: a copy at every member, changed by commands that all members execute in the same order.

Applications derive from the class in `base`; `calls` implements its commands and queries. `fields` and `types` read the
declarations. `ledger` and `tracked` keep track of what a command has changed, so that a failed one can be undone, and so that
`snapshots` can be taken while commands go on. `machine` holds all objects of one member. Nothing here depends on how commands
are ordered: `home` is the interface to that. `containers` and `leases` are ready-made objects.
"""
