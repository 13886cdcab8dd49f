"""A run in which everything happens that may happen to members of views, recorded as a driver would."""

from __future__ import annotations

from pathlib import Path

from quire.model.orders import RELIABLE, Guarantee, in_order
from quire.trace.log import Address, EventLog
from quire.trace.schema import Outcome, RunInfo
from quire.trace.store import RunWriter
from quire.trace.tables import as_records
from quire.trace.views import Operation, ViewEvent, ViewMember, operation_word

MS = 1_000_000
PROMISES = in_order(RELIABLE | {Guarantee.TOTAL, Guarantee.VIRTUAL_SYNCHRONY, Guarantee.UNIFORM, Guarantee.ONCE})


class Script:
    """Writes down what happens, one thing after the other."""

    def __init__(self, members: int) -> None:
        self.logs = [EventLog(process) for process in range(members)]
        self.incarnation = [1] * members
        self.sent = [0] * members
        self.number = 0
        self.view: tuple[int, ...] = ()
        self.now = 0
        self.deliveries = 0

    def tick(self, step_ms: float = 2) -> tuple[int, int]:
        """The logical time, which is the same as the order of all that happens here, and the time."""
        self.now += round(step_ms * MS)
        return self.now, self.now

    def install(self, *members: int) -> None:
        self.number, self.view = self.number + 1, members
        named = [ViewMember(process, self.incarnation[process]) for process in members]
        for process in members:
            self.logs[process].installed("board", self.number, named, self.incarnation[process], *self.tick(1))

    def happen(self, what: ViewEvent, process: int, *others: int) -> None:
        self.logs[process].happened(what, "board", self.number, self.incarnation[process], *self.tick(), others)

    def resume(self, process: int, kept: int) -> None:
        self.incarnation[process] += 1
        self.logs[process].resumed("board", self.number, self.incarnation[process], kept, *self.tick())

    def send(self, process: int, *to: int, count: int = 1, operation: int | None = None) -> None:
        """Messages that these members deliver, or all of the view."""
        log, first = self.logs[process], self.sent[process]
        word = operation_word(Operation(f"session-{process}", first + 1 if operation is None else operation), first)
        address = log.address(Address("board", tuple(sorted(self.view)), txn=word))
        lamport, time_ns = self.tick(4)
        log.send(process, first, count, lamport, time_ns, address, 32)
        self.sent[process] += count
        self.now += count
        for member in to or self.view:
            self.deliver(member, process, first, count)

    def deliver(self, member: int, origin: int, first: int, count: int = 1) -> None:
        log = self.logs[member]
        lamport, time_ns = self.tick(3)
        log.deliver(origin, first, count, lamport, time_ns, log.address(Address("board")), 32)
        self.now += count
        self.deliveries += count

    def write(self, directory: Path, crashed: tuple[int, ...] = ()) -> Path:
        with RunWriter(directory, "changing") as writer:
            for log in self.logs:
                writer.write(log.process, log.names, as_records(log.take()))
            outcome = Outcome(complete=True, messages=sum(self.sent), deliveries=self.deliveries, crashed=crashed)
            writer.finish(
                RunInfo(
                    run="changing", source="test", protocol="single-phase", options={}, members=len(self.logs),
                    groups={"board": tuple(range(len(self.logs)))}, promises=PROMISES, outcome=outcome,
                )
            )  # fmt: skip
        return directory


def write_changing(directory: Path) -> Path:
    """Five members: one crashes, one is cut off and excluded and comes back, one is restarted, one leaves, one ends."""
    script = Script(5)
    script.install(0, 1, 2, 3, 4)
    script.send(0)
    script.send(3, count=6)
    script.happen(ViewEvent.CRASH, 4)
    script.send(1, 0, 1, 2, 3)
    script.install(0, 1, 2, 3)
    script.send(2)
    for process, others in ((0, (3,)), (1, (3,)), (2, (3,)), (3, (0, 1, 2))):
        script.happen(ViewEvent.CUT, process, *others)
    script.happen(ViewEvent.BLOCKED, 3)
    script.send(0, 0, 1, 2)
    script.install(0, 1, 2)
    script.send(1)
    script.happen(ViewEvent.CRASH, 2)
    script.resume(2, 1)
    script.send(0, count=12)
    for process, others in ((0, (3,)), (1, (3,)), (2, (3,)), (3, (0, 1, 2))):
        script.happen(ViewEvent.HEALED, process, *others)
    script.happen(ViewEvent.UNBLOCKED, 3)
    script.happen(ViewEvent.EXCLUDED, 3)
    script.incarnation[3] += 1
    script.install(0, 1, 2, 3)
    script.send(3)
    script.happen(ViewEvent.LEFT, 1)
    script.install(0, 2, 3)
    script.send(2)
    script.send(0, 0, 2)
    return script.write(directory, crashed=(3, 4))
