"""The errors of the sequencing service, by what the application has to do about them."""

from __future__ import annotations

from quire.model.errors import BadInput, QuireError, WindowFull

NAME_MAX = 256
GROUPS_MAX = 1 << 16
"""How many groups there may be, so that nobody can found more than there is memory for."""


class NoSuchGroup(BadInput):
    """No group of this name exists, or this client has not looked it up."""

    def __init__(self, group: str) -> None:
        super().__init__(f"there is no group {group!r}; create it first")
        self.group = group


class TooManyGroups(QuireError):
    """The service has reached its limit of groups, and creates no more."""

    def __init__(self, group: str) -> None:
        super().__init__(f"{group!r} cannot be created: the service has {GROUPS_MAX} groups already; use one of them")
        self.group = group


class UnitUnavailable(QuireError):
    """Too few processes of the service are running to continue with this group. Try again when more are back."""

    def __init__(self, group: str) -> None:
        super().__init__(f"too few sequencers are there to go on with {group!r}; try again when more of them are back")
        self.group = group


class GroupLost(QuireError):
    """All processes that knew the state of the group are gone, and its messages with them. Its name is not used again."""

    def __init__(self, group: str) -> None:
        super().__init__(f"{group!r} was lost with those who knew all of it; create a group of another name")
        self.group = group


class AlreadyMember(BadInput):
    """The client is already a member of the group that it wants to join."""

    def __init__(self, group: str) -> None:
        super().__init__(f"this client is a member of {group!r} already")
        self.group = group


class NotMember(BadInput):
    """The client is not a member of the group that it wants to leave."""

    def __init__(self, group: str) -> None:
        super().__init__(f"this client is not a member of {group!r}")
        self.group = group


class Busy(QuireError):
    """A client can join or leave only one group at a time. Ask again when the current request has ended."""

    def __init__(self, group: str) -> None:
        super().__init__(f"this client is still joining or leaving {group!r}; ask again when that has ended")
        self.group = group


class Overload(WindowFull):
    """The client has reached its limit of messages without a number. Send again after the next Numbered."""


class GapUnrecoverable(QuireError):
    """No process has the messages that this client is missing. Leave the group, join it again, and ask another member for
    what is missing."""

    def __init__(self, group: str) -> None:
        super().__init__(f"messages of {group!r} are missing here and stored nowhere; leave it and join it again")
        self.group = group


class Evicted(QuireError):
    """The service has removed this client from all of its groups, because it was silent for too long, delayed the others, or
    sent what no correct client sends. Start again under another number."""

    def __init__(self, why: str = "the service considered it dead") -> None:
        super().__init__(f"this client was removed from its groups; connect again ({why})")


def is_name(group: str) -> bool:
    """Whether this is a valid name for a group."""
    return 0 < len(group) <= NAME_MAX and group.isprintable()


def check_name(group: str) -> None:
    """Raise BadInput unless this is a valid name for a group."""
    if not is_name(group):
        raise BadInput(f"a group needs a name of 1 to {NAME_MAX} printable characters")
