"""The simulator: runs the protocols in virtual time over a seeded random network.

The same settings and seed give the same bytes on any machine. Nothing here reads a clock, iterates over a set of
strings, or calls a mathematical function whose last bit depends on the machine.
"""
