"""The errors of Quire, by who has to act on them. Each text is one sentence that says what to do."""

from __future__ import annotations


class QuireError(Exception):
    """Anything that Quire reports by itself."""


class BadInput(QuireError):
    """The caller asked for something that does not exist or cannot work: an option, a number, a file."""


class CannotWrite(QuireError):
    """A file could not be written, because the disk is full or fails; says which file, and why."""


class TooLarge(BadInput):
    """Something has more bytes than there is room for in one message, value, call or packet. Nothing of it was sent."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(f"{what} may have at most {limit} bytes, not {size}")
        self.size = size
        self.limit = limit


class NoQuorum(QuireError):
    """No majority can be reached from here; `silent`: the processes that cannot. What was asked for was not done."""

    silent: tuple[int | str, ...] = ()


class OutcomeUnknown(QuireError):
    """Whether the request was carried out cannot be known here."""


class SparkFailed(QuireError):
    """Spark failed; has Spark's own message."""


class WindowFull(QuireError):
    """A member has as many undelivered messages of its own as it may have; submit again after the next delivery."""


class HoldBackFull(QuireError):
    """A member holds back as much as it may; leave the packet on its link and offer it again after the next delivery."""


class ProtocolViolation(QuireError):
    """A peer sent what no correct peer sends. Its link must be closed; nothing of the packet was taken."""

    def __init__(self, peer: int, what: str) -> None:
        super().__init__(f"member {peer} broke the protocol: {what}")
        self.peer = peer
        self.what = what
