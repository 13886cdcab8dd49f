"""The errors of live groups, each with what the application can do about it."""

from __future__ import annotations

from quire.live.common import Common
from quire.model.errors import QuireError


class GroupFailed(QuireError):
    """The group cannot continue; everything that waits for it raises this. A fixed group cannot be repaired: create a new one.

    `common` says how far all survivors are known to have delivered the same; beyond that, a member may have delivered messages
    that others have not, and the lost member may have delivered messages that no other has. For services it is empty.
    """

    common = Common()


class MemberUnreachable(GroupFailed):
    """A member did not join, its process has ended, or it was silent for longer than the timeout. A fixed group ends with it:
    create a new one without it, which may continue from where `common` ends."""

    def __init__(self, member: int, address: str, silent_s: float, why: str) -> None:
        super().__init__(f"member {member} ({address}) has been unreachable for {silent_s:.1f} s: {why}")
        self.member = member
        self.address = address
        self.silent_s = silent_s
        self.why = why


class StaleEpoch(GroupFailed):
    """A sequencer was restarted and knows nothing of this client: connect again."""

    def __init__(self, sequencer: int, address: str) -> None:
        super().__init__(f"sequencer {sequencer} ({address}) was restarted and no longer knows this client; connect again")
        self.sequencer = sequencer
        self.address = address


class PeerMisbehaved(GroupFailed):
    """A member sent what no correct member sends."""

    def __init__(self, member: int, what: str) -> None:
        super().__init__(what)
        self.member = member


class Dismissed(GroupFailed):
    """The other side has dropped this process; what was on its way in either direction is lost."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the service has dismissed this client: {why}")
        self.why = why


class GroupClosed(QuireError):
    """The group is closing or closed, so that nothing more can be sent. A fixed group ends with the first to leave it."""


class NotDelivered(QuireError):
    """The group ended before everything was known to be delivered everywhere.

    Of this member's own messages `accepted` were accepted and the first `delivered` were delivered here.
    """

    def __init__(self, accepted: int, delivered: int, missing: str) -> None:
        own = f"messages {delivered} to {accepted - 1} of this member" if accepted > delivered else "some messages"
        super().__init__(f"{own} may not be delivered everywhere: {missing}")
        self.accepted = accepted
        self.delivered = delivered
