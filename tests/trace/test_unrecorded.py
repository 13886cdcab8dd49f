"""What a client sent and did not live to record is in the run, so that the numbers of its groups are what they were."""

from __future__ import annotations

from pathlib import Path

from quire.live.runs.collecting import collect
from quire.live.services.sequencers import connect
from quire.model.orders import Guarantee
from quire.pipeline import Verdict
from quire.pipeline.auditing.auditor import audit_here
from quire.trace.log import Address, EventLog
from quire.trace.parts.description import PartEnd, describe_part, read_clock
from quire.trace.parts.frames import NewNames
from quire.trace.parts.writer import PartWriter

STAYS, KILLED = 1, 2
BOTH = (STAYS, KILLED)


class Client:
    def __init__(self, me: int) -> None:
        self._log = EventLog(me)
        self._lamport = 0

    def _next(self) -> tuple[int, int]:
        self._lamport += 1
        return self._lamport, self._lamport

    def sees(self, change: str, who: int, number: int, members: tuple[int, ...]) -> None:
        self._log.view(who, number, *self._next(), self._log.address(Address("tea", members, op=change)))

    def sends(self, number: int) -> None:
        self._log.send(self._log.process, number, 1, *self._next(), self._log.address(Address("tea", BOTH)), 5)

    def delivers(self, origin: int, number: int, after: int = 0) -> None:
        self._lamport = max(self._lamport, after)
        self._log.deliver(origin, number, 1, *self._next(), self._log.address(Address("tea")), 5)

    def leaves_part(self, directory: Path, *, ends: bool) -> None:
        log, me = self._log, self._log.process
        recording = connect("127.0.0.1:7400", me=me - 1, trace=directory)._visit.host._recording
        assert recording is not None
        part = PartWriter(directory, describe_part(recording._identity, me, 100 + me, {0: 100}))
        part.append(NewNames(tuple(log.names.addresses), tuple(log.names.packet_types)), log.take())
        if ends:
            part.end(PartEnd(clock=read_clock()))
        part.close()


def collected(directory: Path, delivered: tuple[int, ...]) -> Path:
    """One client was killed when it had recorded that it sent message 0; the other delivers these of it, and leaves."""
    stays, killed = Client(STAYS), Client(KILLED)
    for client in (stays, killed):
        client.sees("join", STAYS, 1, (STAYS,))
        client.sees("join", KILLED, 2, BOTH)
    killed.sends(0)
    for number in delivered:
        stays.delivers(KILLED, number, after=10 + number)
    last = 2 + len(delivered)
    stays.sees("leave", KILLED, last + 1, (STAYS,))
    stays.sees("leave", STAYS, last + 2, ())
    stays.leaves_part(directory / "parts", ends=True)
    killed.leaves_part(directory / "parts", ends=False)
    collect(directory / "parts", directory / "run")
    return directory / "run"


def test_numbers_are_right_where_a_sender_did_not_record_what_others_delivered(tmp_path: Path) -> None:
    checks = audit_here(collected(tmp_path, (0, 1, 3))).checks
    for guarantee in (Guarantee.MEMBERSHIPS, Guarantee.INTEGRITY, Guarantee.FIFO, Guarantee.AGREEMENT):
        assert checks[guarantee].verdict is Verdict.HOLDS, checks[guarantee]


def test_what_was_delivered_out_of_order_is_found_though_its_sender_did_not_record_it(tmp_path: Path) -> None:
    assert audit_here(collected(tmp_path, (0, 2, 1))).checks[Guarantee.FIFO].verdict is Verdict.VIOLATED
