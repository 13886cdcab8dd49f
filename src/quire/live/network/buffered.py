"""Base class of all connections: received bytes go into one buffer, and reading can be paused."""

from __future__ import annotations

import asyncio
from abc import abstractmethod

from quire.wire.frames import Reader

TOO_LATE = "it did not complete the handshake in time"


class BufferedConnection(asyncio.BufferedProtocol):
    address = "?"
    """Where the other end is, for people."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._transport: asyncio.Transport | None = None
        self._paused = False

    @abstractmethod
    def close(self, reason: str, *, at_once: bool = False) -> None:
        """Close after everything written has been sent, or `at_once`."""

    @abstractmethod
    def give_up(self, reason: str) -> None:
        """The connection will never be made."""

    @abstractmethod
    def _advance(self) -> None:
        """Take everything that is in the buffer, until the connection is paused or closed."""

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._reader.space()

    def buffer_updated(self, count: int) -> None:
        self._reader.filled(count)
        self._advance()

    def eof_received(self) -> bool:
        return False

    def pause(self) -> None:
        """Stop reading until `resume`: backpressure then stops the peer from sending."""
        if self._transport is not None and not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            # What is buffered already comes first, but not from within the caller that made room for it.
            asyncio.get_running_loop().call_soon(self._read_on)

    def is_paused(self) -> bool:
        return self._paused

    def _read_on(self) -> None:
        if not self._paused and self._transport is not None:
            self._advance()
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
