"""Reports: one HTML file with what ran, the audit's verdicts, the costs, and a space-time diagram.

The file is self-contained: it needs no network, no other file, no server. Everything that comes from a trace is escaped, and
the page's content security policy forbids it to load or run anything that was not written into it here.
"""
