"""What happens at a node, recorded by whoever drives it: in local order, at growing logical times."""

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
        """The time that is recorded."""

    def record_send(self, origin: int, seq: int, address: Address, size: int, count: int = 1) -> None:
        lamport = self.tick(count)
        if self.log is not None:
            self.log.send(origin, seq, count, lamport, self.time_ns(), self.log.address(address), size)

    def defer_send(self, origin: int, seq: int, address: Address, size: int, count: int = 1) -> int:
        """Record a send of which it will be known later whom it went to: `settle` what is returned then."""
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
        """A packet leaves at the present logical time, which goes with it: `tick` first."""
        if self.log is not None:
            self.log.packet(name, fanout, self.clock, self.time_ns(), header_bytes, payload_bytes)

    def tick(self, count: int = 1) -> int:
        """The logical time of the next event, or of the first of so many."""
        first, self.clock = self.clock + 1, self.clock + count
        return first

    def heard(self, lamport: int) -> None:
        """Something came that left at this logical time."""
        self.clock = max(self.clock, lamport)
