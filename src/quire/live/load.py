"""The load that a command has a group send: how many messages, of what size, how fast, and from which members."""

from __future__ import annotations

import asyncio

import msgspec

from quire.live import clock


class Load(msgspec.Struct, frozen=True, kw_only=True):
    messages: int | None = None
    """How many messages each sender sends."""
    size: int = 64
    """Bytes of each message."""
    rate: float | None = None
    """Messages a second of each sender; as fast as the group takes them if not given."""
    senders: tuple[int, ...] | None = None
    """Which members send; all if not given."""

    def sends(self, me: int) -> bool:
        return self.senders is None or me in self.senders

    def batch(self, messages_max: int, bytes_max: int) -> list[bytes]:
        """As many messages as may be sent at once."""
        payload = (bytes(range(256)) * (self.size // 256 + 1))[: self.size]
        return [payload] * max(1, min(messages_max, bytes_max // max(self.size, 1)))

    def described(self) -> dict[str, object]:
        """For the description of the run."""
        return {name: getattr(self, name) for name in Load.__struct_fields__}


class Pace:
    """Rate limiter: how many messages of a load are due as time passes. `done`: how many were sent before."""

    def __init__(self, load: Load, done: int = 0) -> None:
        self._load = load
        self._began = clock.now()
        self._done = done
        self._given = 0

    async def take(self, most: int) -> int:
        """How many messages to send now: at most so many, none when all were sent. Waits until one is due."""
        left = max(0, (self._load.messages or 0) - self._done - self._given)
        count = min(left, most)
        if self._load.rate is not None and left:
            passed_s = clock.now() - self._began
            due = int(passed_s * self._load.rate) + 1 - self._given
            if due <= 0:
                await asyncio.sleep(self._given / self._load.rate - passed_s)
                due = 1
            count = min(count, due)
        self._given += count
        return count
