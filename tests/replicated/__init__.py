"""Replicated objects: declarations, execution, snapshots, and groups that hold them."""
