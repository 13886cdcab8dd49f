"""What can go wrong, by who has to act on it. Each text is one sentence that says what to do."""

from __future__ import annotations


class QuireError(Exception):
    """Anything that Quire reports by itself."""


class BadInput(QuireError):
    """The caller asked for something that does not exist or cannot work: an option, a number, a file."""


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


class FlushImpossible(QuireError):
    """A crashed member's messages cannot be completed, because nobody retains what a survivor lacks."""
