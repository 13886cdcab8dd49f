"""The protocols: pure state machines from inputs to effects, one module each, and the registry that names them.

`contract` says what a protocol is; `registry` finds one by name and checks its options.
"""
