"""One connection to one peer: first the handshake, then introductions, then frames.

A connection belongs to no peer until the handshake is over, and takes part in the group only after both sides have introduced
themselves, found that their settings agree, and admitted each other. Until then its time and memory are tightly limited. It
reports everything to its owner, and decides nothing itself.
"""

from __future__ import annotations

import asyncio
import os
from ipaddress import ip_address
from typing import Protocol, cast

import msgspec

from quire.live.network import verdicts
from quire.live.network.buffered import TOO_LATE, BufferedConnection
from quire.live.network.certificates import judged, why_not
from quire.live.network.handshake import NONCE_BYTES, Handshake, Refused, Trust
from quire.live.network.transports.contract import CLOSE_S, shown
from quire.live.network.verdicts import Verdict
from quire.live.settings import Address, Introduction, Misfit, Settings, check_same, read_address
from quire.model.errors import BadInput, QuireError
from quire.wire.frames import (
    ACKED,
    ALIVE,
    DELIVERED,
    GAVE_UP,
    INTRODUCTION,
    REFUSED,
    UNREAD,
    WELCOME,
    ControlFrame,
    FrameError,
    Numbered,
    Reader,
    SealBroken,
    acked,
    control_frame,
    read_count,
    read_counts,
)

REASON_BYTES_MAX = 500
INTRODUCTION_BYTES_MAX = 1 << 16
READ_BYTES = 1 << 18
"""The size of the receive buffer of an admitted peer; a stranger gets a small one."""

JOINED_BYTES_MAX = 1 << 12
"""A body up to this length is joined with its head here, which is faster than leaving that to the transport."""

WILDCARDS = ("0.0.0.0", "[::]")  # noqa: S104
_CLOSED = "the connection was closed"


class Owner(Protocol):
    """The object that a connection reports to."""

    def introduction_to(self, peer: int) -> Introduction: ...
    def introduced(self, connection: Connection, introduction: Introduction) -> None: ...
    def admitted(self, connection: Connection, introduction: Introduction) -> None: ...
    def frame_arrived(self, connection: Connection, frame: Numbered) -> None: ...
    def acknowledged(self, connection: Connection, received: int) -> None: ...
    def burst_ended(self, connection: Connection) -> None: ...
    def unreadable(self, connection: Connection, error: FrameError) -> None: ...
    def is_alive(self, connection: Connection, *, unread: bool) -> None: ...
    def delivered_there(self, connection: Connection, through: tuple[int, ...]) -> None: ...
    def gave_up(self, connection: Connection, verdict: Verdict) -> None: ...
    def lost(self, connection: Connection, reason: str) -> None: ...


class Connection(BufferedConnection):
    """One connection. `peer`: the member that this one connected to; None for a connection that it accepted."""

    def __init__(self, owner: Owner, settings: Settings, peer: int | None) -> None:
        super().__init__(Reader(INTRODUCTION_BYTES_MAX))
        self.peer: int | None = peer
        self.initiator = peer is not None
        self.open = False
        """Whether both sides have admitted each other."""
        self.was_open = False
        self.mismatch = False
        """Whether it ended because the members' settings certainly differ, so that trying again cannot help."""
        self.deserted = False
        """Whether it ended because the other end closed it without giving a reason."""
        self.beyond: Address | None = None
        """Where the peer's own process listens, if there is no proxy or NAT in between."""
        self.silent = True
        """Whether nothing has come over it."""
        self.ended = asyncio.Event()
        self._owner = owner
        self._settings = settings
        self._theirs: Introduction | None = None
        self._bare = False
        """Whether this is not TLS, though the group is secured by certificates: it can only be refused."""
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
        """Who the peer claims to be: not authenticated, but good enough for messages to people."""
        return self._handshake.claimed

    @property
    def nameless(self) -> bool:
        """Whether a member may have been at the other end that was refused before it could say which one it is."""
        return not self.initiator and self.claimed is None and (self._settings.trust is Trust.TLS or self._handshake.met_tls)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.address = shown(self._transport.get_extra_info("peername") or ())
        self._bare = self._settings.trust is Trust.TLS and self._transport.get_extra_info("ssl_object") is None
        self._timer = asyncio.get_running_loop().call_later(self._settings.handshake_s, self._too_late)
        if self.initiator:
            self._transport.write(self._handshake.start())

    def connection_lost(self, error: Exception | None) -> None:
        if self.ended.is_set():
            return
        self._forget_timer()
        self.deserted = self._reason is _CLOSED and (error is None or isinstance(error, ConnectionError))
        if error is not None and self._reason is _CLOSED:
            why = why_not(error)
            self._reason = f"the connection broke ({why})" if judged(error) is None else why
        elif self._reason is _CLOSED and self.initiator and not self._handshake.done and self._settings.trust is Trust.TLS:
            self._reason = f"{_CLOSED}; it may not have accepted this member's certificate"
        self._transport = None
        self.open = False
        self.ended.set()
        self._owner.lost(self, self._reason)

    def close(self, reason: str, *, at_once: bool = False) -> None:
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
        self._reason = reason
        self.connection_lost(None)

    def refuse(self, reason: str) -> None:
        """Tell the peer why, and close."""
        if self._handshake.done and (self._transport is None or not self._transport.is_closing()):
            self.write(control_frame(REFUSED, reason.encode()[:REASON_BYTES_MAX]))
        self.close(reason)

    def write(self, head: bytes, body: bytes = b"") -> None:
        transport, seal = self._transport, self._handshake.sending
        if transport is None or transport.is_closing():
            return
        if seal is not None:
            transport.write(seal.sealed(head, body))
        elif len(body) > JOINED_BYTES_MAX:
            transport.writelines((head, body))
        else:
            transport.write(head + body)

    def tell(self, received: int) -> None:
        self.write(acked(received))

    def say_alive(self, *, unread: bool) -> None:
        self.write(control_frame(UNREAD if unread else ALIVE))

    def _too_late(self) -> None:
        self.close(TOO_LATE, at_once=True)

    def _advance(self) -> None:
        """Process everything that has been received."""
        try:
            if not self._handshake.done and not self._shake_hands():
                return
            seal = self._handshake.receiving
            for frame in self._reader.frames(seal.opened if seal else None):
                if isinstance(frame, Numbered) and self.open:
                    self._owner.frame_arrived(self, frame)
                elif isinstance(frame, ControlFrame):
                    self._take_control_frame(frame)
                else:
                    raise FrameError("a packet arrived before the handshake was complete")
                if self._paused or self._transport is None or self._transport.is_closing():
                    break
        except Refused as error:
            self.mismatch = error.answer is not None and self.is_certain()
            if self._transport is not None and not self._handshake.done:
                self._transport.write(error.last_words)
            self.refuse(str(error))
        except Misfit as error:
            self.mismatch = self.is_certain()
            self.refuse(str(error))
        except FrameError as error:
            admitted = self.open
            self.refuse(str(error))
            if admitted and not isinstance(error, SealBroken):
                self._owner.unreadable(self, error)
        except QuireError as error:
            self.refuse(str(error))
        if self.open:
            self._owner.burst_ended(self)

    def _shake_hands(self) -> bool:
        assert self._transport is not None
        self.silent = False
        while not self._handshake.done:
            data = self._reader.take(self._handshake.wanted)
            if data is None:
                return False
            answer = self._handshake.receive(data)
            if self._bare:
                raise Refused("the peer does not use TLS, which secures this group")
            self._transport.write(answer)
        self.peer = self._handshake.peer
        assert self.peer is not None
        if self._settings.trust is Trust.TLS:
            self._check_certificate(self.peer)
        mine = self._owner.introduction_to(self.peer)
        here = shown(self._transport.get_extra_info("sockname") or ())
        self.write(control_frame(INTRODUCTION, msgspec.msgpack.encode(msgspec.structs.replace(mine, here=here))))
        return True

    def _check_certificate(self, peer: int) -> None:
        assert self._transport is not None
        certificate = self._transport.get_extra_info("peercert") or {}
        names = {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}
        if self._settings.certificate_name(peer) not in names:
            group = self._settings.group
            raise Misfit(f"the certificate presented by member {peer} of group {group!r} names another")

    def is_certain(self) -> bool:
        """Whether a member of this group is certainly at the other end: it has authenticated or, without authentication, is on
        this machine. A process at another member's address on this machine counts as that member."""
        trust, here = self._settings.trust, _is_loopback(self.address)
        if trust is Trust.TLS:
            return not self._bare
        if trust is Trust.SECRET:
            return self._handshake.done or (self.initiator and here)
        return here

    def _take_control_frame(self, frame: ControlFrame) -> None:
        if frame.kind == INTRODUCTION and self._theirs is None:
            self._theirs = self._introduced(frame.body)
            self.write(control_frame(WELCOME))
        elif frame.kind == WELCOME and self._theirs is not None and not self.open:
            self._owner.admitted(self, self._theirs)
            self._forget_timer()
            self._reader.enlarge(self._settings.frame_bytes_max, READ_BYTES)
        elif frame.kind == REFUSED:
            reason = bytes(frame.body[:REASON_BYTES_MAX]).decode(errors="replace")
            self.mismatch = not self.open and self.is_certain()
            self.close("it refused: " + "".join(letter if letter.isprintable() else "?" for letter in reason))
        elif frame.kind == ACKED and self.open:
            self._owner.acknowledged(self, read_count(frame))
        elif frame.kind == GAVE_UP and self.open:
            self._owner.gave_up(self, verdicts.decode(frame.body))
        elif frame.kind == DELIVERED and self.open:
            self._owner.delivered_there(self, read_counts(frame.body, len(self._settings.members)))
        elif frame.kind in (ALIVE, UNREAD) and self.open:
            self._owner.is_alive(self, unread=frame.kind == UNREAD)
        else:
            raise FrameError(f"a frame of kind {frame.kind} is not allowed here")

    def _introduced(self, body: memoryview) -> Introduction:
        try:
            theirs = msgspec.msgpack.decode(body, type=Introduction)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise FrameError(f"its handshake could not be read: {error}") from error
        assert self.peer is not None
        check_same(self._owner.introduction_to(self.peer), theirs, self._settings.me, self.peer)
        self._owner.introduced(self, theirs)
        self.beyond = self._where_it_listens(theirs)
        return theirs

    def _where_it_listens(self, theirs: Introduction) -> Address | None:
        if theirs.here != self.address:
            return None
        host = self.address.rpartition(":")[0]
        ports = [port for bound, _, port in (at.rpartition(":") for at in theirs.listens) if bound in (host, *WILDCARDS)]
        try:
            return read_address(f"{host}:{ports[0]}") if ports else None
        except BadInput:
            return None

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address.rpartition(":")[0].strip("[]")).is_loopback
    except ValueError:
        return False
