"""Records the events of a node for its driver, in local order and with increasing logical times."""

from __future__ import annotations

from abc import ABC, abstractmethod

from quire.trace.log import Address, EventLog


class EventRecorder(ABC):
    """Keeps the logical clock of one process and records its events. Without a log, only the clock is kept."""

    def __init__(self, log: EventLog | None) -> None:
        self.log = log
        self.clock = 0

    @abstractmethod
    def time_ns(self) -> int:
        """The time to record for events."""

    def record_send(self, origin: int, seq: int, address: Address, size: int, count: int = 1) -> None:
        lamport = self.tick(count)
        if self.log is not None:
            self.log.send(origin, seq, count, lamport, self.time_ns(), self.log.address(address), size)

    def defer_send(self, origin: int, seq: int, address: Address, size: int, count: int = 1) -> int:
        """Record a send whose destinations will be known later: pass the returned record to `settle` then."""
        lamport = self.tick(count)
        if self.log is None:
            return -1
        return self.log.defer_send(origin, seq, count, lamport, self.time_ns(), self.log.address(address), size)

    def settle(self, record: int, address: Address) -> None:
        if self.log is not None:
            self.log.settle(record, self.log.address(address))

    def record_delivery(self, origin: int, seq: int, address: Address, size: int, count: int = 1) -> None:
        lamport = self.tick(count)
        if self.log is not None:
            self.log.deliver(origin, seq, count, lamport, self.time_ns(), self.log.address(address), size)

    def record_view(self, who: int, number: int, address: Address) -> None:
        lamport = self.tick()
        if self.log is not None:
            self.log.view(who, number, lamport, self.time_ns(), self.log.address(address))

    def record_packet(self, name: str, fanout: int, header_bytes: int, payload_bytes: int) -> None:
        """Record a packet that leaves at the current logical time, which it carries: call `tick` first."""
        if self.log is not None:
            self.log.packet(name, fanout, self.clock, self.time_ns(), header_bytes, payload_bytes)

    def tick(self, count: int = 1) -> int:
        """Advance the clock by `count` events, and return the logical time of the first of them."""
        first, self.clock = self.clock + 1, self.clock + count
        return first

    def heard(self, lamport: int) -> None:
        """Advance the clock past that of a received packet, which left at this logical time."""
        self.clock = max(self.clock, lamport)
