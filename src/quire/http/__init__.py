"""HTTP on an event loop, for what may be looked at and not changed: h11 reads and writes the protocol, this bounds it.

guard.py    who may ask
server.py   answers, one after the other or for as long as somebody listens
client.py   asks
addresses.py  where
"""
