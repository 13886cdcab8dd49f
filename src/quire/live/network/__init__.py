"""Connections between processes, and links that survive them: nothing here knows what is sent."""
