"""Ordering: events of several sources that share no clock, put in an exact order on Spark."""
