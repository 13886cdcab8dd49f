"""How packets become bytes on a connection, and how a link survives its connections. Neither knows a socket or a clock.

frames.py   packets and the links' own words as frames, and bytes from a peer read without trust
links.py    frames arrive once and in order, however often the connection breaks
"""
