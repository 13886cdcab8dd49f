"""Connections between processes, and links that outlive single connections, independent of what is sent over them."""
