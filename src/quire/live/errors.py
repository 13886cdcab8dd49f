"""What can go wrong in a live group, each with what the application can do about it."""

from __future__ import annotations

from quire.model.errors import QuireError


class GroupFailed(QuireError):
    """The group cannot go on, and everybody who waits for it is told. A fixed group cannot be mended: found a new one."""


class MemberUnreachable(GroupFailed):
    """A member was silent for longer than the timeout. A fixed group stops with it: found a new one without it."""

    def __init__(self, member: int, address: str, silent_s: float, why: str) -> None:
        super().__init__(f"member {member} ({address}) is unreachable for {silent_s:.1f} s: {why}")
        self.member = member
        self.address = address
        self.silent_s = silent_s


class StaleEpoch(GroupFailed):
    """A sequencer has been started anew, and what this client was told before has no meaning any more: connect anew."""

    def __init__(self, sequencer: int, address: str) -> None:
        super().__init__(f"sequencer {sequencer} ({address}) was started anew and knows nothing of this client; connect anew")
        self.sequencer = sequencer
        self.address = address


class PeerMisbehaved(GroupFailed):
    """A member sent what no correct member sends."""


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
