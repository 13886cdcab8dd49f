"""The trace: one event record for every driver and every check.

A run directory holds `run.json` (what ran) and `trace/`, Parquet files per process, each in local order.
"""
