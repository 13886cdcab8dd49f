"""Verdicts: why a member gives up on its group, as it tells the others before it leaves, so that none blames it."""

from __future__ import annotations

from typing import Literal

import msgspec

from quire.live.errors import GroupFailed, MemberUnreachable, PeerMisbehaved
from quire.live.settings import Address
from quire.model.errors import BadInput, QuireError
from quire.wire.frames import FrameError

WHY_LETTERS_MAX = 500

LEFT = "it left the group without closing it"


class Verdict(msgspec.Struct, frozen=True):
    """Why a member gives up. `member`: the member that it is about; -1: no single one. A `mismatch` is found before the group
    has started; `started`: the group had started at the sender, so it will not start again."""

    what: Literal["unreachable", "misbehaved", "mismatch", "failed"]
    member: int
    why: str
    silent_s: float = 0.0
    started: bool = False

    def error(self, by: int, address: str, me: int, members: tuple[Address, ...]) -> QuireError:
        """The error to raise at a member that receives this from another, which is at that address."""
        if self.member == me:
            return MemberUnreachable(by, address, 0.0, f"it declared this member lost: {self.why}")
        if self.member == by:
            return MemberUnreachable(by, address, 0.0, self.why)
        why = f"{self.why} (reported by member {by})"
        if not 0 <= self.member < len(members):
            return GroupFailed(why)
        if self.what == "misbehaved":
            return PeerMisbehaved(self.member, why)
        if self.what == "mismatch":
            return BadInput(f"member {self.member} ({members[self.member]}): {why}")
        return MemberUnreachable(self.member, str(members[self.member]), self.silent_s, why)


def verdict_of(error: QuireError) -> Verdict:
    """The verdict that a member whose group has failed sends to the others."""
    if isinstance(error, MemberUnreachable):
        return Verdict("unreachable", error.member, error.why, error.silent_s)
    if isinstance(error, PeerMisbehaved):
        return Verdict("misbehaved", error.member, str(error))
    return Verdict("failed", -1, str(error))


def encode(verdict: Verdict) -> bytes:
    return msgspec.msgpack.encode(msgspec.structs.replace(verdict, why=verdict.why[:WHY_LETTERS_MAX]))


def decode(body: memoryview) -> Verdict:
    try:
        verdict = msgspec.msgpack.decode(body, type=Verdict)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FrameError(f"its reason for giving up could not be read: {error}") from error
    why = "".join(letter if letter.isprintable() else "?" for letter in verdict.why[:WHY_LETTERS_MAX])
    return msgspec.structs.replace(verdict, why=why)
