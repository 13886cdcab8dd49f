"""The messages and events that an application of a changing group iterates over."""

from __future__ import annotations

import msgspec

from quire.live.errors import GroupFailed


class ViewMessage(msgspec.Struct, frozen=True, gc=False):
    """A delivered message of a group whose members change."""

    origin: str
    """The name of the member that sent it."""
    seq: int
    """Its number among the messages of that member, from 0. A process that restarts without a journal counts from 0 again."""
    payload: bytes
    view: int
    """The view in which it was delivered."""
    position: int | None
    """Where the order is total, how many messages were delivered in this view before it, at any member."""

    @property
    def order_key(self) -> tuple[int, int] | None:
        """Its position in the total order of its group: comparing keys compares positions, at every member."""
        return None if self.position is None else (self.view, self.position)


class View(msgspec.Struct, frozen=True):
    """The members of the group from here on. All members that continue from one view to the next have delivered the same."""

    number: int
    members: tuple[str, ...]
    """By seniority: members that continue keep their order, and those that join come last."""
    clusters: tuple[str, ...] = ()
    """Of a hierarchy, the cluster of each member, in the same order; empty for a member that named none."""

    @property
    def senior(self) -> str:
        """The longest-standing member. If a view splits into equal halves, the half with this member continues."""
        return self.members[0]

    @property
    def agents(self) -> dict[str, str]:
        """The agent of each cluster that has a name: its senior, who relays what comes from other clusters and goes there."""
        found: dict[str, str] = {}
        for member, cluster in zip(self.members, self.clusters, strict=bool(self.clusters)):
            if cluster:
                found.setdefault(cluster, member)
        return found


class Blocked(msgspec.Struct, frozen=True):
    """This member cannot reach a majority of the view: nothing is delivered until that changes."""

    view: int
    missing: tuple[str, ...]
    why: str


class Unblocked(msgspec.Struct, frozen=True):
    """A majority can be reached again."""

    view: int


class Excluded(msgspec.Struct, frozen=True):
    """The others continued without this member, after the view of this number. Unless `rejoin` is False, it rejoins."""

    view: int


class Restored(msgspec.Struct, frozen=True):
    """This member's state was replaced by the group's, or by the state in its journal. Later deliveries apply to it."""

    view: int
    """The view in which that was the state."""


GroupEvent = ViewMessage | View | Blocked | Unblocked | Excluded | Restored


class MemberExcluded(GroupFailed):
    """The others continued without this member, which does not rejoin automatically: it was silent, or unreachable. Join
    again to take part."""

    def __init__(self, view: int) -> None:
        super().__init__(f"the group continued without this member after view {view}; join again to take part")
        self.view = view
