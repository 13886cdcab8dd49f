"""One connection to one peer: first the handshake, then introductions, then frames.

A connection belongs to nobody until the handshake is over, and takes part in the group only after both sides have
introduced themselves and welcomed each other, having found that they run the same thing. Until then it has little time
and little memory. What it learns it hands to its owner; it decides nothing.
"""

from __future__ import annotations

import asyncio
import os
from ipaddress import ip_address
from typing import Protocol, cast

import msgspec

from quire.live.network.frames import (
    ACKED,
    ALIVE,
    INTRODUCTION,
    REFUSED,
    WELCOME,
    FrameError,
    Numbered,
    Reader,
    Word,
    acked,
    read_count,
    with_room_for,
    word,
)
from quire.live.network.handshake import NONCE_BYTES, SEAL_BYTES, Handshake, Refused, Trust
from quire.live.settings import Introduction, Misfit, Settings, check_same
from quire.model.errors import QuireError

CLOSE_S = 2.0
"""How long a peer may take to receive the last words, and to agree to the end of TLS."""

REASON_BYTES_MAX = 500
INTRODUCTION_BYTES_MAX = 1 << 16
READ_BYTES = 1 << 18
"""How much an admitted peer may send before it is looked at; a stranger gets a small buffer."""

_CLOSED = "the connection was closed"


class Owner(Protocol):
    """What a connection reports to."""

    def introduction_to(self, peer: int) -> Introduction: ...
    def introduced(self, connection: Connection, introduction: Introduction) -> None: ...
    def admitted(self, connection: Connection, introduction: Introduction) -> None: ...
    def frame_arrived(self, connection: Connection, frame: Numbered) -> None: ...
    def acknowledged(self, connection: Connection, received: int) -> None: ...
    def burst_ended(self, connection: Connection) -> None: ...
    def lost(self, connection: Connection, reason: str) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """`peer` is whom this member connected to, or None for a connection that it accepted."""

    def __init__(self, owner: Owner, settings: Settings, peer: int | None) -> None:
        self.peer: int | None = peer
        self.initiator = peer is not None
        self.open = False
        """Whether both sides have welcomed each other."""
        self.was_open = False
        self.misfit = False
        """Whether it ended because members for sure do not run the same thing, so that trying again cannot help."""
        self.ended = asyncio.Event()
        self.address = "?"
        self._owner = owner
        self._settings = settings
        self._theirs: Introduction | None = None
        self._reader = Reader(INTRODUCTION_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._paused = False
        self._timer: asyncio.TimerHandle | None = None
        self._reason = _CLOSED
        self._handshake = Handshake(
            initiator=peer is not None,
            me=settings.me,
            members=len(settings.members) + settings.visitors,
            peer=peer,
            trust=settings.trust,
            nonce=os.urandom(NONCE_BYTES),
            secret=settings.secret,
        )

    @property
    def claimed(self) -> int | None:
        """Who the peer says it is; not to be believed, but to be mentioned."""
        return self._handshake.claimed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.address = shown(self._transport.get_extra_info("peername") or ())
        self._timer = asyncio.get_running_loop().call_later(self._settings.handshake_s, self._too_late)
        if self.initiator:
            self._transport.write(self._handshake.start())

    def connection_lost(self, error: Exception | None) -> None:
        if self.ended.is_set():
            return
        self._forget_timer()
        if error is not None and self._reason is _CLOSED:
            self._reason = f"the connection broke ({error})"
        elif self._reason is _CLOSED and self.initiator and not self._handshake.done and self._settings.trust is Trust.TLS:
            self._reason = f"{_CLOSED}, so that it may not have accepted this member's certificate"
        self._transport = None
        self.open = False
        self.ended.set()
        self._owner.lost(self, self._reason)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._reader.space()

    def buffer_updated(self, count: int) -> None:
        self._reader.filled(count)
        self._advance()

    def eof_received(self) -> bool:
        return False

    def close(self, reason: str, *, at_once: bool = False) -> None:
        """Close after what was written has left, or `at_once`."""
        transport = self._transport
        if transport is None:
            return
        if not transport.is_closing():
            self._reason = reason[:REASON_BYTES_MAX]
            self.open = False
        if at_once:
            transport.abort()
        elif not transport.is_closing():
            transport.close()
            self._forget_timer()
            self._timer = asyncio.get_running_loop().call_later(CLOSE_S, transport.abort)

    def give_up(self, reason: str) -> None:
        """It will never be made."""
        self._reason = reason
        self.connection_lost(None)

    def refuse(self, reason: str) -> None:
        """Tell the peer why, and close."""
        if self._handshake.done:
            self.write(word(REFUSED, reason.encode()[:REASON_BYTES_MAX]))
        self.close(reason)

    def pause(self) -> None:
        """Read nothing more until `resume`: the peer's sending then comes to a stop by itself."""
        if self._transport is not None and not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            # What is here already comes first, and not within whatever made room for it.
            asyncio.get_running_loop().call_soon(self._read_on)

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
        return self._paused

    def _read_on(self) -> None:
        if not self._paused and self._transport is not None:
            self._advance()
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _too_late(self) -> None:
        self.close("it did not introduce itself in time", at_once=True)

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
                if self._paused or self._transport is None or self._transport.is_closing():
                    break
        except Refused as error:
            self.misfit = error.answer is not None and self._is_certain()
            if self._transport is not None and not self._handshake.done:
                self._transport.write(error.last_words)
            self.refuse(str(error))
        except Misfit as error:
            self.misfit = self._is_certain()
            self.refuse(str(error))
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
            self._transport.write(self._handshake.receive(data))
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
            group = self._settings.group
            raise Misfit(f"the certificate that came with member {peer} of group {group!r} does not name it as that")

    def _is_certain(self) -> bool:
        """Whether a member of this group is at the other end for sure: it has shown that, or where nobody has to show
        anything, it is on this machine. What is at another member's address on this machine counts as that member."""
        trust, here = self._settings.trust, _is_loopback(self.address)
        if trust is Trust.TLS:
            return True
        if trust is Trust.SECRET:
            return self._handshake.done or (self.initiator and here)
        return here

    def _take_word(self, frame: Word) -> None:
        if frame.kind == INTRODUCTION and self._theirs is None:
            self._theirs = self._introduced(frame.body)
            self.write(word(WELCOME))
        elif frame.kind == WELCOME and self._theirs is not None and not self.open:
            self._owner.admitted(self, self._theirs)
            self._forget_timer()
            self._reader.enlarge(self._settings.frame_bytes_max, READ_BYTES)
        elif frame.kind == REFUSED:
            reason = bytes(frame.body[:REASON_BYTES_MAX]).decode(errors="replace")
            self.misfit = not self.open and self._is_certain()
            self.close("it refused: " + "".join(letter if letter.isprintable() else "?" for letter in reason))
        elif frame.kind == ACKED and self.open:
            self._owner.acknowledged(self, read_count(frame))
        elif frame.kind != ALIVE or not self.open:
            raise FrameError(f"a frame of kind {frame.kind} has no place here")

    def _introduced(self, body: memoryview) -> Introduction:
        try:
            theirs = msgspec.msgpack.decode(body, type=Introduction)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise FrameError(f"its introduction could not be read: {error}") from error
        assert self.peer is not None
        check_same(self._owner.introduction_to(self.peer), theirs, self._settings.me, self.peer)
        self._owner.introduced(self, theirs)
        return theirs

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def shown(address: tuple[object, ...]) -> str:
    """An address of a socket for people to read."""
    if len(address) < 2:
        return "?"
    host, port = str(address[0]), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address.rpartition(":")[0].strip("[]")).is_loopback
    except ValueError:
        return False
