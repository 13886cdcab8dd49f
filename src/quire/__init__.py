"""Quire: ordered group communication for Python."""
