"""Read-only HTTP on an event loop: h11 implements the protocol, this package adds limits and access control.

guard.py      which requests are allowed
server.py     the server: single answers, and streams
client.py     the client
addresses.py  HOST:PORT
"""
