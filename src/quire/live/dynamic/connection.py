"""One connection to a process that introduces itself by name: handshake, introductions, frames.

The side that connects need not know which process it reaches. Once both sides have authenticated as members of the group, each
introduces itself; with certificates, by the name in its certificate. All frames after that go to the owner.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from typing import Protocol, cast

import msgspec

from quire.live.dynamic.joining import check_member_name
from quire.live.network.buffered import TOO_LATE, BufferedConnection
from quire.live.network.certificates import why_not
from quire.live.network.handshake import NAMED, NONCE_BYTES, Handshake, Refused, Trust
from quire.live.network.transports.contract import CLOSE_S, shown
from quire.live.settings import Settings
from quire.model.errors import QuireError
from quire.views.introductions import Introduction
from quire.wire.frames import GAVE_UP, INTRODUCTION, REFUSED, Frame, FrameError, Reader, control_frame

REASON_BYTES_MAX = 500
INTRODUCTION_BYTES_MAX = 1 << 18
"""An introduction has the addresses of all known processes."""
READ_BYTES = 1 << 18
TOGETHER_BYTES = 1 << 12
"""So few bytes are put together before they are written, which takes less time than to write several parts."""
_CLOSED = "the connection was closed"


class Owner(Protocol):
    """What a connection reports to."""

    def introduction(self) -> Introduction: ...
    def introduced(self, connection: NamedConnection, theirs: Introduction) -> None: ...
    def arrived(self, connection: NamedConnection, frames: Iterator[Frame]) -> None:
        """All frames that could be read at once. The body of a frame is valid until the next one is asked for."""

    def gave_up(self, connection: NamedConnection, why: str) -> None: ...
    def ended(self, connection: NamedConnection, why: str) -> None: ...


class NamedConnection(BufferedConnection):
    """A connection, which the process knows by its `number`; `dialled`: the address, None where the other side connected."""

    def __init__(self, owner: Owner, settings: Settings, number: int, dialled: str | None) -> None:
        super().__init__(Reader(INTRODUCTION_BYTES_MAX))
        self.number = number
        self.dialled = dialled
        self.known = False
        """Whether both sides have introduced themselves."""
        self.name = ""
        """The name of the other side, once it has."""
        self.over = False
        self._owner = owner
        self._settings = settings
        self._unwritten: list[bytes | bytearray] = []
        self._why = _CLOSED
        self.ended_unexplained = False
        """Whether the other side, or the network, closed it without giving a reason."""
        self._fault: QuireError | None = None
        """Why nothing more can be read."""
        self._last_words: tuple[int, str] | None = None
        """REFUSED or GAVE_UP with the reason, if the other side has sent one."""
        self._timer: asyncio.TimerHandle | None = None
        self._handshake = Handshake(
            initiator=dialled is not None,
            me=NAMED,
            members=0,
            peer=NAMED if dialled is not None else None,
            trust=settings.trust,
            nonce=os.urandom(NONCE_BYTES),
            secret=settings.secret,
        )

    # What is written.

    def write(self, parts: tuple[bytes, ...]) -> None:
        """Buffer a frame, the first part of which begins with its length, until the next `flush`."""
        seal = self._handshake.sending
        if seal is None:
            self._unwritten += parts
        else:
            self._unwritten.append(seal.sealed(*parts))

    def flush(self) -> None:
        unwritten, self._unwritten = self._unwritten, []
        if unwritten and self._transport is not None and not self._transport.is_closing():
            if sum(map(len, unwritten)) <= TOGETHER_BYTES:
                self._transport.write(b"".join(unwritten))
            else:
                self._transport.writelines(unwritten)

    def refuse(self, reason: str, kind: int = REFUSED) -> None:
        """Tell the other side why, and close. GAVE_UP: this process has given up on the group."""
        if self._handshake.done:
            self.write((control_frame(kind, reason.encode()[:REASON_BYTES_MAX]),))
            self.flush()
        self.close(reason)

    def close(self, reason: str, *, at_once: bool = False) -> None:
        transport = self._transport
        if transport is None:
            return
        if not transport.is_closing():
            self._why = reason
        if at_once:
            transport.abort()
        elif not transport.is_closing():
            transport.close()
            self._set_timer(CLOSE_S, transport.abort)

    def give_up(self, reason: str) -> None:
        self._why = reason
        self.connection_lost(None)

    # What is read.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.address = shown(self._transport.get_extra_info("peername") or ())
        self._set_timer(self._settings.handshake_s, lambda: self.close(TOO_LATE, at_once=True))
        if self.dialled is not None:
            self._transport.write(self._handshake.start())

    def connection_lost(self, error: Exception | None) -> None:
        if self.over:
            return
        self.over = True
        self._forget_timer()
        if self._why is _CLOSED:
            self.ended_unexplained = True
            if error is not None:
                self._why = f"the connection broke ({why_not(error)})"
        self._transport = None
        self._owner.ended(self, self._why)

    def _advance(self) -> None:
        """Process everything that has been received."""
        try:
            if not self._handshake.done and not self._shake_hands():
                return
            frames = self._frames()
            if self.known or self._meet(frames):
                self._owner.arrived(self, frames)
            if self._last_words is not None:
                self._end(*self._last_words)
            elif self._fault is not None:
                self.refuse(str(self._fault))
        except Refused as error:
            if self._transport is not None and not self._handshake.done:
                self._transport.write(error.last_words)
            self.refuse(str(error))
        except QuireError as error:
            self.refuse(str(error))

    def _frames(self) -> Iterator[Frame]:
        """Every frame that has been received, up to the first unreadable one: those before it are still processed."""
        seal = self._handshake.receiving
        try:
            for frame in self._reader.frames(seal.opened if seal else None):
                if frame.kind in (REFUSED, GAVE_UP):
                    text = bytes(frame.body[:REASON_BYTES_MAX]).decode(errors="replace")
                    self._last_words = (frame.kind, "".join(letter if letter.isprintable() else "?" for letter in text))
                    return
                yield frame
        except QuireError as error:
            self._fault = error

    def _end(self, kind: int, reason: str) -> None:
        """The other side ends the connection, with a reason."""
        self._last_words = None
        self.close(f"it refused: {reason}")
        if kind == GAVE_UP and self.known:
            self._owner.gave_up(self, reason)

    def _meet(self, frames: Iterator[Frame]) -> bool:
        """Process the introduction of the other side, which comes first; returns whether it has come."""
        frame = next(frames, None)
        if frame is None:
            return False
        if frame.kind != INTRODUCTION:
            raise FrameError("a frame arrived before the introduction")
        theirs = self._introduced(frame.body)
        self.known, self.name = True, theirs.name
        self._forget_timer()
        self._reader.enlarge(self._settings.frame_bytes_max, READ_BYTES)
        self._owner.introduced(self, theirs)
        return not (self._paused or self.over or self._transport is None or self._transport.is_closing())

    def _shake_hands(self) -> bool:
        assert self._transport is not None
        while not self._handshake.done:
            data = self._reader.take(self._handshake.wanted)
            if data is None:
                return False
            answer = self._handshake.receive(data)
            if self._settings.trust is Trust.TLS and self._transport.get_extra_info("ssl_object") is None:
                raise Refused("the peer does not use TLS, which secures this group")
            self._transport.write(answer)
        self.write((control_frame(INTRODUCTION, msgspec.msgpack.encode(self._owner.introduction())),))
        self.flush()
        return True

    def _introduced(self, body: memoryview) -> Introduction:
        try:
            theirs = msgspec.msgpack.decode(body, type=Introduction)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise FrameError(f"its introduction could not be read: {error}") from error
        check_member_name(theirs.name)
        if self._settings.trust is Trust.TLS:
            assert self._transport is not None
            certificate = self._transport.get_extra_info("peercert") or {}
            names = {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}
            if self._settings.certificate_name(theirs.name) not in names:
                raise Refused(f"the certificate presented by {theirs.name!r} names another")
        return theirs

    def _set_timer(self, seconds: float, then: Callable[[], object]) -> None:
        self._forget_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, then)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
