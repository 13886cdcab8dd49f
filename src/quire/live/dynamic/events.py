"""What an application is told as its group goes on."""

from __future__ import annotations

import msgspec

from quire.live.errors import GroupFailed


class ViewMessage(msgspec.Struct, frozen=True, gc=False):
    """A delivered message of a group whose members change."""

    origin: str
    """The name of the member that sent it."""
    seq: int
    """Its number among the messages of that member, from 0. A process that is started again without a journal counts anew."""
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
    """Who is in the group from here on. Everybody who goes from one view to the next has delivered the same before it."""

    number: int
    members: tuple[str, ...]
    """By seniority: whoever goes on keeps its place, and whoever joins comes last."""

    @property
    def senior(self) -> str:
        """The member that has been there for longest. Where members are parted into equal halves, its half goes on."""
        return self.members[0]


class Blocked(msgspec.Struct, frozen=True):
    """No majority of the view can be reached from here: nothing is delivered until that changes."""

    view: int
    missing: tuple[str, ...]
    why: str


class Unblocked(msgspec.Struct, frozen=True):
    """A majority is there again."""

    view: int


class Excluded(msgspec.Struct, frozen=True):
    """The others went on without this member, after the view of this number. Unless `rejoin` is False, it comes back."""

    view: int


class Restored(msgspec.Struct, frozen=True):
    """The state of this member was replaced by that of the group, or by that in its journal. What is delivered afterwards comes
    on top of it."""

    view: int
    """The view in which that was the state."""


GroupEvent = ViewMessage | View | Blocked | Unblocked | Excluded | Restored


class MemberExcluded(GroupFailed):
    """The others went on without this member, which was told not to come back: it was silent, or could not be reached. Join
    again to take part."""

    def __init__(self, view: int) -> None:
        super().__init__(f"the group went on without this member after view {view}; join again to take part")
        self.view = view
