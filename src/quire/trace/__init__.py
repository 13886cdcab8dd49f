"""The trace of a run: the common event format that all drivers write and all checks read.

A run directory holds `run.json` (what ran) and `trace/`, Parquet files per process, each in local order.
"""
