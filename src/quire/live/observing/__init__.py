"""Read-only observation of a running member over HTTP, off the path of deliveries.

status.py    the present state of a process, as one value
feed.py      the stream of events, of which the last are kept for listeners that come later
observer.py  the pages: /metrics, /status, /events, /trace
"""
