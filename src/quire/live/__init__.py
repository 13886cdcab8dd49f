"""Live groups: the protocols on real sockets.

`join` is the entry point. `network` has connections (bytes), the handshake (authentication), links (nothing lost or repeated
across reconnects) and meshes of links; `groups` the API and driver of groups with fixed members, and `dynamic` of groups whose
members change; `services` sequencers, objects and stores; `observing` what a process shows over HTTP; `runs` what `quire run`
does.
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
