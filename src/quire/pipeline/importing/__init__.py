"""Importing: converts logs of other systems into run directories, which all other commands can read.

Files are cut into chunks, which tasks parse in parallel. The stages pass records on in scratch files, grouped by host: for each
host, one task puts the events in local order; then causes are resolved, messages numbered, and the trace written. The driver
sees counts, hosts and defects, never events.
"""
