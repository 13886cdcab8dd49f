"""Happened-before analysis: vector times for every event of a trace, and queries on them."""
