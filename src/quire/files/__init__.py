"""Atomic output: files and directories that appear whole or not at all, and never destroy anything else."""
