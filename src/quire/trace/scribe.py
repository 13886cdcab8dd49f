"""Whoever drives a node writes down what happens there: in local order, at growing logical times."""

from __future__ import annotations

from abc import ABC, abstractmethod

from quire.trace.recorder import Address, Recorder


class Scribe(ABC):
    """Keeps the logical clock of one process and records its events. Without a recorder, only the clock is kept."""

    def __init__(self, recorder: Recorder | None) -> None:
        self.recorder = recorder
        self.clock = 0

    @abstractmethod
    def time_ns(self) -> int:
        """The time that is recorded."""

    def record_send(self, origin: int, seq: int, address: Address, size: int, count: int = 1) -> None:
        lamport = self.tick(count)
        if self.recorder is not None:
            self.recorder.send(origin, seq, count, lamport, self.time_ns(), self.recorder.address(address), size)

    def defer_send(self, origin: int, seq: int, size: int, count: int = 1) -> int:
        """Record a send of which it will be known later whom it went to: `settle` what is returned then."""
        lamport = self.tick(count)
        return -1 if self.recorder is None else self.recorder.defer_send(origin, seq, count, lamport, self.time_ns(), size)

    def settle(self, place: int, address: Address) -> None:
        if self.recorder is not None:
            self.recorder.settle(place, self.recorder.address(address))

    def record_delivery(self, origin: int, seq: int, address: Address, size: int, count: int = 1) -> None:
        lamport = self.tick(count)
        if self.recorder is not None:
            self.recorder.deliver(origin, seq, count, lamport, self.time_ns(), self.recorder.address(address), size)

    def record_view(self, who: int, number: int, address: Address) -> None:
        lamport = self.tick()
        if self.recorder is not None:
            self.recorder.view(who, number, lamport, self.time_ns(), self.recorder.address(address))

    def record_packet(self, name: str, fanout: int, header_bytes: int, payload_bytes: int) -> None:
        """A packet leaves at the present logical time, which goes with it: `tick` first."""
        if self.recorder is not None:
            self.recorder.packet(name, fanout, self.clock, self.time_ns(), header_bytes, payload_bytes)

    def tick(self, count: int = 1) -> int:
        """The logical time of the next event, or of the first of so many."""
        first, self.clock = self.clock + 1, self.clock + count
        return first

    def heard(self, lamport: int) -> None:
        """Something came that left at this logical time."""
        self.clock = max(self.clock, lamport)
