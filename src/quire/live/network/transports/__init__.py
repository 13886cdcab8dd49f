"""Transports, which carry bytes between members: TCP on real networks, memory within one event loop."""
