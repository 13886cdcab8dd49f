"""Live groups: the protocols on real sockets.

`join` is the way in. `network` holds connections (bytes), the handshake (who is there), links (nothing lost or repeated across
reconnects) and meshes of them; `groups` what an application holds of a group whose members are fixed, and `dynamic` of one
whose members change; `services` sequencers, objects and stores; `runs` what `quire run` does.
"""

from quire.live.errors import GroupClosed, GroupFailed, MemberUnreachable, NotDelivered, PeerMisbehaved, StaleEpoch
from quire.live.events import Event
from quire.live.groups.group import Group
from quire.live.held import Held
from quire.live.joining import join
from quire.live.network_options import Certificates

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
