"""Kinds of events, apart from the columns, because those need Arrow and whoever only names kinds does not."""

from __future__ import annotations

SEND, DELIVER, PACKET, VIEW, LOCAL, RECEIVE = range(6)
KINDS = ("send", "deliver", "packet", "view", "local", "receive")
"""Kinds of events by their codes above; the file holds the word."""
