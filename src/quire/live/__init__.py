"""Live groups: the protocols on real sockets.

`join` is the way in. Below it, one idea a module: frames (bytes), handshake (who is there), links (nothing lost or
repeated across reconnects), connection and mesh (sockets), driver (inputs and effects), group (what an application holds).
"""

from quire.live.driver import Held
from quire.live.errors import GroupClosed, GroupFailed, MemberUnreachable, NotDelivered, PeerMisbehaved, StaleEpoch
from quire.live.events import Event
from quire.live.group import Group, join
from quire.live.settings import Certificates

__all__ = [
    "Certificates",
    "Event",
    "Group",
    "GroupClosed",
    "GroupFailed",
    "Held",
    "MemberUnreachable",
    "NotDelivered",
    "PeerMisbehaved",
    "StaleEpoch",
    "join",
]
