"""Reports: one HTML file that says what ran, whether its orders held, what it cost, and draws it.

The file needs nothing else: no network, no other file, no server. Everything that comes from a trace is escaped, and the
page forbids itself, by its own content security policy, to load or run anything that was not written into it here.
"""
