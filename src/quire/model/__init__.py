"""The words that every other layer shares: members, messages, runs, packets and named orders.

Nothing here knows of a protocol, a network, a file or Spark.
"""
