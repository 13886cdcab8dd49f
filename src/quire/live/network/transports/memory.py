"""Members within one event loop, for tests: bytes go through memory, in order, each chunk at a later turn of the loop.

An end buffers what its reader has not taken while it is paused. `MemoryNetwork.of(loop).cut_off(address)` lets nothing more
arrive from or at the member of this address, and nobody learn of it, as when a cable is pulled; `part` parts two of them;
`mend` puts it back, without what was on its way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from quire.live.network.transports.contract import shown
from quire.live.settings import Address, Settings
from quire.model.errors import BadInput

FIRST_FREE_PORT = 1 << 15


class MemoryEnd(asyncio.Transport):
    """One of the two ends of a connection."""

    def __init__(self, network: MemoryNetwork, own: Address, peer: Address) -> None:
        super().__init__({"sockname": (own.host, own.port), "peername": (peer.host, peer.port)})
        self.other: MemoryEnd
        self._network = network
        self._own = own
        self._protocol: asyncio.BufferedProtocol | None = None
        self._arrived: deque[bytes] = deque()
        self._reading = True
        self._scheduled = False
        self._closing = False
        self._ended = False

    def begin(self, protocol: asyncio.BufferedProtocol) -> None:
        self._protocol = protocol
        protocol.connection_made(self)
        self._schedule()

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if len(data) and not self._closing and not self._network.is_cut_off(self._own, self.other._own):
            self.other._arrive(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        self.write(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if not self._network.is_cut_off(self._own, self.other._own):
                self.other._arrive(b"")
            asyncio.get_running_loop().call_soon(self._end, None)

    def abort(self) -> None:
        self._closing = True
        if not self._network.is_cut_off(self._own, self.other._own):
            asyncio.get_running_loop().call_soon(self.other._end, ConnectionResetError("the peer has reset the connection"))
        asyncio.get_running_loop().call_soon(self._end, None)

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._schedule()

    def _arrive(self, data: bytes) -> None:
        self._arrived.append(data)
        self._schedule()

    def _schedule(self) -> None:
        if self._protocol is not None and self._arrived and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._hand_over)

    def _hand_over(self) -> None:
        """Give the protocol what has arrived, as much as it has space for at a time; an empty chunk is the end."""
        self._scheduled = False
        while self._arrived and self.is_reading():
            assert self._protocol is not None
            data = self._arrived.popleft()
            if not data:
                self._end(None)
                return
            space = memoryview(self._protocol.get_buffer(len(data)))
            taken = min(len(space), len(data))
            space[:taken] = data[:taken]
            if taken < len(data):
                self._arrived.appendleft(data[taken:])
            self._protocol.buffer_updated(taken)

    def _end(self, error: Exception | None) -> None:
        self._closing = True
        if not self._ended and self._protocol is not None:
            self._ended = True
            self._protocol.connection_lost(error)


class MemoryStranger:
    def __init__(self, end: MemoryEnd) -> None:
        self.address = shown(end.get_extra_info("peername"))
        self._end = end

    async def talk(self, protocol: asyncio.BufferedProtocol) -> bool:
        self._end.begin(protocol)
        return True

    def close(self) -> None:
        self._end.abort()


class MemoryEndpoint:
    def __init__(self, network: MemoryNetwork, address: Address) -> None:
        self.port = address.port
        self.address = str(address)
        self._where = address
        self.strangers: asyncio.Queue[MemoryStranger] = asyncio.Queue()
        self._network = network

    async def accept(self) -> MemoryStranger:
        return await self.strangers.get()

    def close(self) -> None:
        self._network.endpoints.pop(self._where, None)


class MemoryNetwork:
    """The endpoints of one event loop, and which members are cut off."""

    _all: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, MemoryNetwork]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self.endpoints: dict[Address, MemoryEndpoint] = {}
        self._cut_off: set[Address] = set()
        self._parted: set[frozenset[Address]] = set()

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> MemoryNetwork:
        return cls._all.setdefault(loop, cls())

    def cut_off(self, address: Address) -> None:
        self._cut_off.add(address)

    def part(self, one: Address, other: Address) -> None:
        """Partition two members: nothing more arrives from either at the other."""
        self._parted.add(frozenset((one, other)))

    def mend(self, address: Address) -> None:
        self._cut_off.discard(address)
        self._parted = {pair for pair in self._parted if address not in pair}

    def is_cut_off(self, *addresses: Address) -> bool:
        return not self._cut_off.isdisjoint(addresses) or frozenset(addresses) in self._parted

    def free_port(self, host: str) -> int:
        return next(port for port in range(FIRST_FREE_PORT, 1 << 16) if Address(host, port) not in self.endpoints)


class Memory:
    def __init__(self, settings: Settings) -> None:
        if settings.certificates is not None:
            raise BadInput("certificates need TCP; members within one process have none")
        everybody = settings.members
        self._own = everybody[settings.me] if settings.me < len(everybody) else Address("visitor", settings.me)

    async def listen(self, address: Address) -> Sequence[MemoryEndpoint]:
        network = MemoryNetwork.of(asyncio.get_running_loop())
        where = Address(address.host, address.port or network.free_port(address.host))
        if where in network.endpoints:
            raise OSError(f"{where} is already in use")
        endpoint = network.endpoints[where] = MemoryEndpoint(network, where)
        return (endpoint,)

    async def connect(self, protocol: asyncio.BufferedProtocol, member: int, address: Address) -> None:  # noqa: ARG002
        self._reach(address).begin(protocol)
        # The accepting side gets a turn before this side goes on.
        await asyncio.sleep(0)

    async def say(self, words: bytes, address: Address) -> None:
        end = self._reach(address)
        end.write(words)
        end.close()

    def _reach(self, address: Address) -> MemoryEnd:
        network = MemoryNetwork.of(asyncio.get_running_loop())
        endpoint = network.endpoints.get(address)
        if network.is_cut_off(self._own, address):
            raise OSError("the network is unreachable")
        if endpoint is None:
            raise ConnectionRefusedError("connection refused")
        here, there = MemoryEnd(network, self._own, address), MemoryEnd(network, address, self._own)
        here.other, there.other = there, here
        endpoint.strangers.put_nowait(MemoryStranger(there))
        return here
