"""The errors of the sequencing service, by what the application has to do about them."""

from __future__ import annotations

from quire.model.errors import BadInput, QuireError, WindowFull

NAME_MAX = 256
GROUPS_MAX = 1 << 16
"""How many groups there may be, so that nobody can found more than there is memory for."""


class NoSuchGroup(BadInput):
    """Nobody has created a group of this name, or this client has not looked for it."""

    def __init__(self, group: str) -> None:
        super().__init__(f"there is no group {group!r}; create it first")
        self.group = group


class TooManyGroups(QuireError):
    """The service has as many groups as it may have, and founds no more."""

    def __init__(self, group: str) -> None:
        super().__init__(f"{group!r} cannot be created: the service has {GROUPS_MAX} groups already; use one of them")
        self.group = group


class UnitUnavailable(QuireError):
    """Too few processes of the service are there to go on with this group; try again when more of them are back."""

    def __init__(self, group: str) -> None:
        super().__init__(f"too few sequencers are there to go on with {group!r}; try again when more of them are back")
        self.group = group


class GroupLost(QuireError):
    """All processes that knew the group's state are gone, and its messages with them. Its name is not used again."""

    def __init__(self, group: str) -> None:
        super().__init__(f"{group!r} was lost with those who knew all of it; create a group of another name")
        self.group = group


class AlreadyMember(BadInput):
    """A client joins a group in which it is already."""

    def __init__(self, group: str) -> None:
        super().__init__(f"this client is a member of {group!r} already")
        self.group = group


class NotMember(BadInput):
    """A client leaves a group in which it is not."""

    def __init__(self, group: str) -> None:
        super().__init__(f"this client is not a member of {group!r}")
        self.group = group


class Busy(QuireError):
    """A client joins and leaves one group at a time; ask again when the request under way has ended."""

    def __init__(self, group: str) -> None:
        super().__init__(f"this client is still joining or leaving {group!r}; ask again when that has ended")
        self.group = group


class Overload(WindowFull):
    """A client has as many messages without a number as it may have; send again after the next is numbered."""


class GapUnrecoverable(QuireError):
    """Messages that this client lacks are kept nowhere any more: leave the group, join it again, and ask a member for
    what is missing."""

    def __init__(self, group: str) -> None:
        super().__init__(f"messages of {group!r} are missing here and stored nowhere; leave it and join it again")
        self.group = group


class Evicted(QuireError):
    """The service has removed this client from all of its groups, because it was silent for too long, held the others up or
    sent what cannot be; start again under another number."""

    def __init__(self, why: str = "the service considered it dead") -> None:
        super().__init__(f"this client was removed from its groups; connect again ({why})")


def is_name(group: str) -> bool:
    """Whether a group may have this name."""
    return 0 < len(group) <= NAME_MAX and group.isprintable()


def check_name(group: str) -> None:
    """Raise BadInput unless a group may have this name."""
    if not is_name(group):
        raise BadInput(f"a group needs a name of 1 to {NAME_MAX} printable characters")
