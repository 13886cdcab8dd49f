"""The basic types that every other layer shares: messages, runs, packets, guarantees, faults and errors.

Nothing here depends on a protocol, a network, a file or Spark.
"""
