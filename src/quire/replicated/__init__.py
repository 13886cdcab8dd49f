"""Replicated objects: a copy at every member, changed by commands that all members execute in the same order.

`base` is what applications derive from, and `calls` what its methods become. `fields` and `types` read the declarations.
`ledger` and `tracked` know what a command has changed, so that a failed one can be taken back, and `snapshots` be taken while
commands go on. `machine` holds all objects of one member. Nothing here knows how commands get their order: `home` is what is
asked for.
"""
