"""The driver of a fixed group: feeds a protocol its inputs and performs its effects, in the order in which they come.

It depends on no particular protocol, and on no socket. Packets are sent through `transmit`, messages delivered through
`deliver`; the driver numbers the member's own messages, keeps the Lamport clock that goes with every packet, and records
events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from quire.live import clock
from quire.live.held import Held
from quire.model.errors import WindowFull
from quire.model.messages import Run, make_run
from quire.model.packets import Packet
from quire.protocols.contract import Deliver, Effects, Protocol
from quire.trace.log import Address, EventLog
from quire.trace.relay_load import RelayLoad

Transmit = Callable[[Packet, tuple[int, ...] | None, int], int]
"""Put a packet on the links to some members (None: all others) at a logical time; returns the bytes of its header."""


class Driver:
    def __init__(
        self,
        protocol: Protocol,
        transmit: Transmit,
        deliver: Callable[[Deliver], None],
        log: EventLog | None,
        wall_ns: Callable[[], int] = clock.wall_ns,
    ) -> None:
        self.protocol = protocol
        self.lamport = 0
        self.submitted = 0
        self.delivered = [0] * protocol.members
        self.through = [0] * protocol.members
        """For each member, the number after that of its last message that was delivered; they are delivered in order."""
        self.clock: Callable[[], float] = clock.now
        """Returns the time of the event loop; replace it by a faster one in that loop."""
        self._transmit = transmit
        self._deliver = deliver
        self._log = log
        self._wall_ns = wall_ns
        # Where messages may go to some members only, a receiver does not know the other recipients.
        self._delivered_from = log.address(Address()) if log is not None and protocol.addressed else 0
        self.arrived = 0
        """Packets received."""
        self.entries = 0
        """How many message counts (vector entries) were in the headers of all copies sent, where they are recorded."""
        # Per origin, (number after its last message, when it came) of each run that was not delivered at once.
        self._came: list[deque[tuple[int, float]]] = [deque() for _ in range(protocol.members)]

    def submit(self, payloads: Sequence[bytes], lengths: Sequence[int], to: tuple[int, ...] | None = None) -> bool:
        """Send a run of these messages, with these lengths, to all members or to some; returns False, without effect, while the
        window is full."""
        run = make_run(self.protocol.me, self.submitted, payloads, lengths)
        try:
            effects = self.protocol.submit(run) if to is None else self.protocol.send(run, to)
        except WindowFull:
            return False
        self.submitted += run.count
        first, self.lamport = self.lamport + 1, self.lamport + run.count
        if self._log is not None:
            address, size = self._address(to), run.payload_bytes() // run.count
            self._log.send(run.origin, run.first, run.count, first, self._wall_ns(), address, size)
        self._perform(effects)
        if (end := run.end) > self.through[run.origin] and (to is None or run.origin in to):
            self._came[run.origin].append((end, self.clock()))
        return True

    def receive(self, source: int, packet: Packet, lamport: int) -> None:
        """Take a packet that left its sender at this logical time. Raises what the protocol raises."""
        effects = self.protocol.receive(source, packet)
        self.lamport = max(self.lamport, lamport)
        self.arrived += 1
        if effects:
            self._perform(effects)
        run = packet.carried()
        if run is not None and (end := run.end) > self.through[run.origin] and self.protocol.expects(packet):
            self._came[run.origin].append((end, self.clock()))

    def _address(self, to: tuple[int, ...] | None) -> int:
        """The number that stands in the records for an address: these members, or all of the group."""
        assert self._log is not None
        if to is None and self.protocol.addressed:
            audience = tuple(sorted(self.protocol.audience()))
            to = None if len(audience) == self.protocol.members else audience
        return 0 if to is None else self._log.address(Address(dests=tuple(sorted(to))))

    def relay_load(self) -> RelayLoad | None:
        return RelayLoad(self.protocol.role(), self.arrived, self.entries) if self.protocol.addressed else None

    def held(self) -> list[Held]:
        """Everything that is held back, oldest first."""
        now = self.clock()
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
                if self._log is not None:
                    fanout = self.protocol.members - 1 if effect.to is None else len(effect.to)
                    self.entries += effect.packet.entries * fanout
                    payload = _payload_bytes(effect.packet.carried())
                    self._log.packet(effect.packet.name, fanout, self.lamport, self._wall_ns(), header, payload)

    def _delivered(self, effect: Deliver) -> None:
        run = effect.run
        origin = run.origin
        first, self.lamport = self.lamport + 1, self.lamport + run.count
        self.delivered[origin] += run.count
        self.through[origin] = end = run.end
        came = self._came[origin]
        while came and came[0][0] <= end:
            came.popleft()
        if self._log is not None:
            size = run.payload_bytes() // run.count
            self._log.deliver(origin, run.first, run.count, first, self._wall_ns(), self._delivered_from, size)
        self._deliver(effect)


def _payload_bytes(run: Run | None) -> int:
    return run.payload_bytes() if run is not None else 0
