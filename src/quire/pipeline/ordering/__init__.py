"""Ordering on Spark: puts the events of several sources without a common clock into one exact order."""
