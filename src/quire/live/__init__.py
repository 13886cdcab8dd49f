"""Live groups: the protocols on real sockets.

`join` is the way in. `network` holds frames (bytes), the handshake (who is there), links (nothing lost or repeated across
reconnects) and meshes of them; `groups` what an application holds; `services` sequencers, objects and stores; `runs` what
`quire run` does.
"""

from quire.live.errors import GroupClosed, GroupFailed, MemberUnreachable, NotDelivered, PeerMisbehaved, StaleEpoch
from quire.live.events import Event
from quire.live.groups.driver import Held
from quire.live.groups.group import Group, join
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
