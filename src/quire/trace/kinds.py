"""The kinds of events; separate from the schema, so that using them does not require Arrow."""

from __future__ import annotations

SEND, DELIVER, PACKET, VIEW, LOCAL, RECEIVE = range(6)
KINDS = ("send", "deliver", "packet", "view", "local", "receive")
"""The names of the kinds, indexed by the codes above; files hold the name."""
