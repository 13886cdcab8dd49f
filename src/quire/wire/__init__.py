"""The wire format, and links that outlive their connections; without sockets or clocks.

frames.py   encodes packets and control messages as frames, and parses untrusted bytes from a peer
links.py    reliable FIFO links: frames arrive once and in order, however often the connection breaks
"""
