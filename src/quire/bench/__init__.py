"""Benchmarks of live groups, compared with rivals in the same run.

A benchmark starts processes on loopback (`processes`), each of which plays one part (`process`) of one contender: a group of
Quire (`group`), bare sockets that order nothing (`mesh`), or a ZeroMQ sequencer (`zeromq`). All move the same load
(`load`) and check what they delivered. `measure` repeats that and compares; `targets` says what is good enough.
"""
