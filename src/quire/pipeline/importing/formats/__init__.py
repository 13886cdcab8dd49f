"""Formats of logs, one module each; `registry` lists them, and `contract` is what they have in common."""
