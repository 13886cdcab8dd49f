"""One connection to one peer: first the handshake, then introductions, then frames.

A connection belongs to nobody until the handshake is over, and takes part in the group only after both sides have
introduced themselves and found that they run the same thing. What it learns it hands to its owner; it decides nothing.
"""

from __future__ import annotations

import asyncio
import os
from typing import Protocol, cast

import msgspec

from quire.live.frames import (
    ACKED,
    ALIVE,
    INTRODUCTION,
    REFUSED,
    FrameError,
    Numbered,
    Reader,
    Word,
    acked,
    read_count,
    with_room_for,
    word,
)
from quire.live.handshake import HELLO_BYTES, NONCE_BYTES, SEAL_BYTES, Handshake, Refused, Trust
from quire.live.settings import Introduction, Settings, difference
from quire.model.errors import QuireError

REASON_BYTES_MAX = 500
READ_BYTES = 1 << 18
"""How much an admitted peer may send before it is looked at; a stranger gets a small buffer."""


class Owner(Protocol):
    """What a connection reports to."""

    def introduction_to(self, peer: int) -> Introduction: ...
    def admitted(self, connection: Connection, introduction: Introduction) -> None: ...
    def frame_arrived(self, connection: Connection, frame: Numbered) -> None: ...
    def acknowledged(self, connection: Connection, received: int) -> None: ...
    def burst_ended(self, connection: Connection) -> None: ...
    def lost(self, connection: Connection, reason: str) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """`peer` is whom this member connected to, or None for a connection that it accepted; `one_too_many` is closed as
    soon as it is made."""

    def __init__(self, owner: Owner, settings: Settings, peer: int | None, *, one_too_many: bool = False) -> None:
        self.peer: int | None = peer
        self.open = False
        """Whether both sides have introduced themselves."""
        self.address = ""
        self._owner = owner
        self._settings = settings
        self._one_too_many = one_too_many
        self._reader = Reader(settings.frame_bytes_max)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reason = "the connection was closed"
        self._handshake = Handshake(
            initiator=peer is not None,
            me=settings.me,
            members=len(settings.members),
            peer=peer,
            trust=settings.trust,
            nonce=os.urandom(NONCE_BYTES),
            secret=settings.secret,
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.address = _address(self._transport)
        if self._one_too_many:
            self.close("too many connections wait to introduce themselves")
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._settings.handshake_s, self.close, "it did not introduce itself in time")
        if self.peer is not None:
            self._transport.write(self._handshake.start())

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if error is not None and self._reason == "the connection was closed":
            self._reason = f"the connection broke ({error})"
        self._transport = None
        self.open = False
        self._owner.lost(self, self._reason)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._reader.space()

    def buffer_updated(self, count: int) -> None:
        self._reader.filled(count)
        self._advance()

    def eof_received(self) -> bool:
        return False

    def close(self, reason: str) -> None:
        """Close after what was written has left."""
        if self._transport is not None and not self._transport.is_closing():
            self._reason = reason
            self._transport.close()

    def refuse(self, reason: str) -> None:
        """Tell the peer why, and close."""
        if self._handshake.done:
            self.write(word(REFUSED, reason.encode()[:REASON_BYTES_MAX]))
        self.close(reason)

    def pause(self) -> None:
        """Read nothing more until `resume`: the peer's sending then comes to a stop by itself."""
        if self._transport is not None and self._transport.is_reading():
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and not self._transport.is_reading():
            self._transport.resume_reading()
            self._advance()

    def write(self, head: bytes, body: bytes = b"") -> None:
        transport, seal = self._transport, self._handshake.sending
        if transport is None or transport.is_closing():
            return
        if seal is not None:
            head = with_room_for(head, SEAL_BYTES)
            transport.writelines((head, body, seal.tag(head[4:], body)))
        elif body:
            transport.writelines((head, body))
        else:
            transport.write(head)

    def tell(self, received: int) -> None:
        self.write(acked(received))

    def say_alive(self) -> None:
        self.write(word(ALIVE))

    def is_paused(self) -> bool:
        return self._transport is not None and not self._transport.is_reading()

    def _advance(self) -> None:
        """Take everything that is here."""
        try:
            if not self._handshake.done and not self._shake_hands():
                return
            seal = self._handshake.receiving
            for frame in self._reader.frames(seal.opened if seal else None):
                if isinstance(frame, Numbered) and self.open:
                    self._owner.frame_arrived(self, frame)
                elif isinstance(frame, Word):
                    self._take_word(frame)
                else:
                    raise FrameError("a packet came before the introduction")
                if self.is_paused() or self._transport is None or self._transport.is_closing():
                    break
        except FrameError as error:
            self.refuse(str(error))
        except Refused as error:
            self.close(str(error))
        except QuireError as error:
            self.refuse(str(error))
        if self.open:
            self._owner.burst_ended(self)

    def _shake_hands(self) -> bool:
        assert self._transport is not None
        while not self._handshake.done:
            data = self._reader.take(self._handshake.wanted)
            if data is None:
                return False
            try:
                answer = self._handshake.receive(data)
            except Refused:
                if len(data) >= HELLO_BYTES:
                    self._transport.write(self._handshake.last_words(data))
                raise
            self._transport.write(answer)
        self.peer = self._handshake.peer
        assert self.peer is not None
        if self._settings.trust is Trust.TLS:
            self._check_certificate(self.peer)
        self.write(word(INTRODUCTION, msgspec.msgpack.encode(self._owner.introduction_to(self.peer))))
        return True

    def _check_certificate(self, peer: int) -> None:
        assert self._transport is not None
        certificate = self._transport.get_extra_info("peercert") or {}
        names = {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}
        if self._settings.certificate_name(peer) not in names:
            raise Refused(f"its certificate does not name it as member {peer} of group {self._settings.group!r}")

    def _take_word(self, frame: Word) -> None:
        if frame.kind == INTRODUCTION and not self.open:
            self._introduced(frame.body)
        elif frame.kind == REFUSED:
            reason = bytes(frame.body[:REASON_BYTES_MAX]).decode(errors="replace")
            self.close("it refused: " + "".join(letter if letter.isprintable() else "?" for letter in reason))
        elif frame.kind == ACKED and self.open:
            self._owner.acknowledged(self, read_count(frame))
        elif frame.kind != ALIVE or not self.open:
            raise FrameError(f"a frame of kind {frame.kind} has no place here")

    def _introduced(self, body: memoryview) -> None:
        try:
            theirs = msgspec.msgpack.decode(body, type=Introduction)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as error:
            raise FrameError(f"its introduction could not be read: {error}") from error
        assert self.peer is not None
        reason = difference(self._owner.introduction_to(self.peer), theirs, self.peer)
        if reason:
            raise FrameError(reason)
        if self._timer is not None:
            self._timer.cancel()
        self._owner.admitted(self, theirs)
        self._reader.enlarge(READ_BYTES)


def _address(transport: asyncio.Transport) -> str:
    name = transport.get_extra_info("peername")
    return f"{name[0]}:{name[1]}" if name else "?"
