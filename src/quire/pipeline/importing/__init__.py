"""Importing: logs of other systems become run directories that everything else here reads.

A file is cut into chunks, which tasks parse side by side. What they find goes through files, sorted by host: each host's
events are put in local order by one task, then causes are looked up, messages numbered, and the trace written. The driver
sees counts, hosts and defects, never events.
"""
