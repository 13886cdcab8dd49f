"""The driver: feeds a protocol its inputs and performs its effects, in the order in which they come.

It knows no protocol and no socket. Packets leave through `transmit`, messages through `deliver`; the driver numbers the
member's own messages, keeps the logical clock that goes with every packet, and records what happens.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from quire.model.errors import WindowFull
from quire.model.messages import Run, make_run
from quire.model.packets import Packet
from quire.protocols.contract import Deliver, Effects, Protocol
from quire.trace.recorder import Address, Recorder

Transmit = Callable[[Packet, tuple[int, ...] | None, int], int]
"""Put a packet on the links to some members (None: all others) at a logical time; returns the bytes of its header."""


class Held(msgspec.Struct, frozen=True):
    """Messages that are held back here: `count` of `origin` from number `first` on, what for, from whom, since when."""

    origin: int
    first: int
    count: int
    waits_for: tuple[int, ...]
    because: str
    since_s: float


class Burden(msgspec.Struct, frozen=True):
    """What a member bore where members pass on what is for others: packets that came, counts in the headers it sent."""

    role: str
    arrived: int
    entries: int


class Driver:
    def __init__(
        self, protocol: Protocol, transmit: Transmit, deliver: Callable[[Deliver], None], recorder: Recorder | None
    ) -> None:
        self.protocol = protocol
        self.lamport = 0
        self.submitted = 0
        self.delivered = [0] * protocol.members
        self._transmit = transmit
        self._deliver = deliver
        self._recorder = recorder
        # Where messages may go to some members only, whoever delivers one is not told to whom else it went.
        self._delivered_from = recorder.address(Address()) if recorder is not None and protocol.addressed else 0
        self.arrived = 0
        """Packets that came."""
        self.entries = 0
        """Counts of messages in the headers of all copies that left, where they are recorded."""
        # Per origin, (number after its last message, when it came) of each run that may still be held back.
        self._came: list[deque[tuple[int, float]]] = [deque() for _ in range(protocol.members)]

    def submit(self, payloads: Sequence[bytes], to: tuple[int, ...] | None = None) -> bool:
        """Send a run of these messages to everybody or to some; False, and nothing happened, while the window is full."""
        run = make_run(self.protocol.me, self.submitted, payloads)
        try:
            effects = self.protocol.submit(run) if to is None else self.protocol.send(run, to)
        except WindowFull:
            return False
        self.submitted += run.count
        if to is None or run.origin in to:
            self._came[run.origin].append((run.end, time.monotonic()))
        first, self.lamport = self.lamport + 1, self.lamport + run.count
        if self._recorder is not None:
            address, size = self._address(to), run.payload_bytes() // run.count
            self._recorder.send(run.origin, run.first, run.count, first, time.time_ns(), address, size)
        self._perform(effects)
        return True

    def receive(self, source: int, packet: Packet, lamport: int) -> None:
        """Take a packet that left its sender at this logical time. Raises what the protocol raises."""
        effects = self.protocol.receive(source, packet)
        self.lamport = max(self.lamport, lamport)
        self.arrived += 1
        run = packet.carried()
        if run is not None and self.protocol.expects(packet):
            self._came[run.origin].append((run.end, time.monotonic()))
        if effects:
            self._perform(effects)

    def _address(self, to: tuple[int, ...] | None) -> int:
        """The number in the records of an address: these members, or everybody who is in the group."""
        assert self._recorder is not None
        if to is None and self.protocol.addressed:
            audience = tuple(sorted(self.protocol.audience()))
            to = None if len(audience) == self.protocol.members else audience
        return 0 if to is None else self._recorder.address(Address(dests=tuple(sorted(to))))

    def burden(self) -> Burden | None:
        return Burden(self.protocol.role(), self.arrived, self.entries) if self.protocol.addressed else None

    def held(self) -> list[Held]:
        """Everything that is held back, oldest first."""
        now = time.monotonic()
        found = []
        for waiting in self.protocol.waiting():
            run = waiting.run
            since = next((at for end, at in self._came[run.origin] if end > run.first), now)
            found.append(Held(run.origin, run.first, run.count, waiting.members, waiting.because, now - since))
        return sorted(found, key=lambda held: -held.since_s)

    def _perform(self, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                self._delivered(effect)
            else:
                self.lamport += 1
                header = self._transmit(effect.packet, effect.to, self.lamport)
                if self._recorder is not None:
                    fanout = self.protocol.members - 1 if effect.to is None else len(effect.to)
                    self.entries += effect.packet.entries * fanout
                    payload = _payload_bytes(effect.packet.carried())
                    self._recorder.packet(effect.packet.name, fanout, self.lamport, time.time_ns(), header, payload)

    def _delivered(self, effect: Deliver) -> None:
        run = effect.run
        origin = run.origin
        first, self.lamport = self.lamport + 1, self.lamport + run.count
        self.delivered[origin] += run.count
        came = self._came[origin]
        while came and came[0][0] <= run.end:
            came.popleft()
        if self._recorder is not None:
            size = run.payload_bytes() // run.count
            self._recorder.deliver(origin, run.first, run.count, first, time.time_ns(), self._delivered_from, size)
        self._deliver(effect)


def _payload_bytes(run: Run | None) -> int:
    return run.payload_bytes() if run is not None else 0
