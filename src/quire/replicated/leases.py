"""Ready-made replicated objects: a lock with a lease, and a leader election, whose leader holds the lease.

Time is that of the commands: a lease has expired for a command whose caller's clock is later. So the clocks of members must
agree to within a small part of a lease, and a holder must stop in time by its own clock, as `hold` does. Where even that is not
enough, use the token for fencing: the protected resource should remember the highest token that it has seen, and refuse lower
ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import msgspec

from quire.model.errors import BadInput, QuireError
from quire.replicated.base import Replicated
from quire.replicated.calls import command, query
from quire.replicated.cancelling import taken_or_given_back


class LeaseLost(QuireError):
    """While a lock was held, it was not renewed in time, or was taken by another member: its holder may not have been the
    only one."""


class Lease(msgspec.Struct, frozen=True):
    """A lease on a lock, and its holder."""

    member: int
    token: int
    """Higher than that of every lease before."""
    until: float
    """When it expires, in seconds since 1970, unless it is renewed."""


class Lock(Replicated):
    """A lock that one member holds at a time, for a limited time."""

    lease: Lease | None
    tokens: int = 0

    @command
    def acquire(self, seconds: float) -> Lease | None:
        """Take the lock for this long if nobody holds it; returns the lease, or None."""
        check_duration(seconds)
        now = self.context.now
        if self.lease is not None and now < self.lease.until:
            return None
        self.tokens += 1
        self.lease = Lease(self.context.member, self.tokens, now + seconds)
        return self.lease

    @command
    def renew(self, token: int, seconds: float) -> Lease | None:
        """Hold it for this long from now on; returns the new lease, or None if the one with this token has ended."""
        check_duration(seconds)
        now = self.context.now
        if self.lease is None or self.lease.token != token or now >= self.lease.until:
            return None
        self.lease = Lease(self.lease.member, token, now + seconds)
        return self.lease

    @command
    def release(self, token: int) -> bool:
        """Release it; returns whether the lease with this token was the current one."""
        if self.lease is None or self.lease.token != token:
            return False
        self.lease = None
        return True

    @query
    def holder(self) -> Lease | None:
        """The latest lease that was not released. It may have expired."""
        return self.lease

    def member_left(self, member: int) -> None:
        if self.lease is not None and self.lease.member == member:
            self.lease = None

    @asynccontextmanager
    async def hold(self, seconds: float = 10.0) -> AsyncIterator[Lease]:
        """Wait for the lock, hold it in the block, and renew it every third of `seconds`. If it cannot be renewed in time,
        the block is cancelled and LeaseLost is raised."""
        lease = await self._wait_for_it(seconds)
        body = asyncio.current_task()
        assert body is not None
        lost = False

        async def keep() -> None:
            nonlocal lost
            current: Lease | None = lease
            while current is not None:
                await asyncio.sleep(seconds / 3)
                left_s = current.until - self._now()
                try:
                    async with asyncio.timeout(max(left_s, 0)):
                        current = await asyncio.shield(self.renew(lease.token, seconds))
                except (TimeoutError, QuireError):
                    current = None
            lost = True
            body.cancel()

        keeper = asyncio.create_task(keep())
        try:
            yield lease
        except asyncio.CancelledError:
            if lost and body.uncancel() == 0:
                raise LeaseLost(f"the lease with token {lease.token} ended before it was renewed") from None
            raise
        finally:
            keeper.cancel()
            if not lost:
                with suppress(QuireError):
                    await self.release(lease.token)

    async def _wait_for_it(self, seconds: float) -> Lease:
        while True:
            lease = await taken_or_given_back(self.acquire(seconds), lambda got: got and self.release(got.token))
            if lease is not None:
                return lease
            await self._ended()

    async def _ended(self) -> None:
        """Wait until the known lease seems to have ended."""
        seen = self.lease
        while self.lease is not None and seen is not None and self.lease.token == seen.token:
            left_s = self.lease.until - self._now()
            if left_s <= 0:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self.changed()

    def _now(self) -> float:
        return self._home_of_calls().now()


class Election(Lock):
    """Leader election: the member that holds the lease leads."""

    def lead(self, seconds: float = 5.0) -> AbstractAsyncContextManager[Lease]:
        """Stand for election, and lead in the block once elected: `async with election.lead() as lease`. The lease is
        renewed; if that fails, the block is cancelled and LeaseLost is raised."""
        return self.hold(seconds)

    async def changes(self) -> AsyncIterator[Lease | None]:
        """The leader as known here, now and whenever it changes. None: there is none, or its lease has expired."""
        announced: int | None = -1
        while True:
            current = self.lease
            if current is not None and current.until <= self._now():
                current = None
            token = None if current is None else current.token
            if token != announced:
                announced = token
                yield current
            elif current is None:
                await self.changed()
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(current.until - self._now()):
                        await self.changed()


def check_duration(seconds: float) -> None:
    if not 0 < seconds < 1e9:
        raise BadInput(f"a lease needs a duration of more than 0 seconds, not {seconds}")
