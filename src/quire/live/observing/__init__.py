"""What a running member shows of itself over HTTP, off the path of deliveries: nothing here changes anything.

status.py    how things stand, as one value
feed.py      what happened, for whoever listens, and the last of it for whoever comes later
observer.py  the pages: /metrics, /status, /events, /trace
"""
