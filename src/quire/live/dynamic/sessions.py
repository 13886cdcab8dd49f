"""The sessions that have executed commands, and which of them have ended: replicated state, the same at every member.

A command identifies its caller by a number. A process that restarts with its journal continues its session, and without one it
begins a new session; so the numbers belong to sessions. The end of a session must take effect at one point of the order of
commands, also for members that catch up later: so the senior member of a view announces it, as a command of its own.
"""

from __future__ import annotations

import msgspec

from quire.live.dynamic.events import View
from quire.model.errors import BadInput


class Caller(msgspec.Struct, array_like=True):
    number: int
    name: str
    view: int
    """The last view in which it executed a command."""


class Gone(msgspec.Struct, frozen=True, array_like=True):
    """An announcement that this session is no longer in this view."""

    session: str
    view: int


class _Book(msgspec.Struct, array_like=True):
    callers: dict[str, Caller]
    next: int


_READ_BOOK = msgspec.msgpack.Decoder(_Book).decode
_READ_GONE = msgspec.msgpack.Decoder(Gone).decode
_ENCODE = msgspec.msgpack.Encoder().encode


class Sessions:
    def __init__(self) -> None:
        self._book = _Book({}, 0)

    def caller(self, session: str, name: str, view: int) -> tuple[int, int | None]:
        """The number of a session that executes a command in this view; and that of an earlier session of the same name, if
        there is one, which has thereby ended, because a name has one process at a time."""
        found = self._book.callers.get(session)
        if found is not None:
            if view > found.view:
                found.view = view
            return found.number, None
        earlier = self._drop(next((each for each, other in self._book.callers.items() if other.name == name), None))
        found = self._book.callers[session] = Caller(self._book.next, name, view)
        self._book.next += 1
        return found.number, earlier

    def name_of(self, number: int) -> str | None:
        """The name of the session with this number; None if it has ended."""
        return next((caller.name for caller in self._book.callers.values() if caller.number == number), None)

    def absent_from(self, view: View) -> list[bytes]:
        """The announcements of the sessions that are not in this view, encoded."""
        return [
            _ENCODE(Gone(session, view.number))
            for session, caller in self._book.callers.items()
            if caller.name not in view.members
        ]

    def gone(self, payload: bytes) -> int | None:
        """A session is announced to have ended; returns its number, unless it has come back since or is not known."""
        try:
            gone = _READ_GONE(payload)
        except msgspec.DecodeError as error:
            raise BadInput(f"the members that are gone cannot be read: {error}") from None
        found = self._book.callers.get(gone.session)
        return self._drop(gone.session) if found is not None and found.view < gone.view else None

    def _drop(self, session: str | None) -> int | None:
        return None if session is None else self._book.callers.pop(session).number

    def pack(self) -> bytes:
        return _ENCODE(self._book)

    def restore(self, packed: bytes) -> None:
        try:
            self._book = _READ_BOOK(packed)
        except msgspec.DecodeError as error:
            raise BadInput(f"the callers in a snapshot cannot be read: {error}") from None
