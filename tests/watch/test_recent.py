"""What the page has of the last events: latencies, in whatever order sender and receivers are heard from, and what is drawn."""

from __future__ import annotations

import asyncio

from quire.trace.kinds import DELIVER, PACKET, SEND
from quire.trace.log import Address, Names
from quire.trace.parts.description import RunIdentity, describe_part
from quire.trace.parts.frames import NewNames
from quire.trace.records import RECORD_BYTES, pack_record
from quire.trace.tables import as_records
from quire.trace.tail import Excerpt
from quire.watch.diagram import diagram
from quire.watch.recent import MARKS_MAX, Recent, Sends
from quire.watch.scene import Scene

NAMES = Names([Address("all", (0, 1))])
A, B = 0, 1


def take(recent: Recent, sends: Sends, *records: tuple[int, int, int, int, int]) -> None:
    """Records of kind, origin, first message, number of messages, and time."""
    packed = b"".join(pack_record(kind, origin, first, count, at, at, 0, 8) for kind, origin, first, count, at in records)
    recent.take(as_records(packed), 0, NAMES, sends)


def test_deliveries_that_are_heard_of_before_their_sending_are_measured_when_that_is() -> None:
    sends, of_a, of_b = Sends(), Recent(), Recent()
    take(of_a, sends, (SEND, A, 0, 10, 1_000))
    take(of_b, sends, (DELIVER, A, 0, 10, 1_050), (DELIVER, A, 10, 5, 9_070))
    assert list(of_b.latencies_ns[A]) == [50]
    take(of_a, sends, (SEND, A, 10, 5, 9_000))
    take(of_b, sends)
    assert list(of_b.latencies_ns[A]) == [50, 70]


def test_messages_whose_sending_was_not_heard_of_are_not_measured_from_an_earlier_one() -> None:
    sends, of_a, of_b = Sends(), Recent(), Recent()
    take(of_a, sends, (SEND, A, 0, 1, 1_000), (SEND, A, 5, 1, 8_000))
    take(of_b, sends, (DELIVER, A, 3, 1, 7_050), (DELIVER, A, 5, 1, 8_010))
    assert list(of_b.latencies_ns[A]) == [10]
    assert not of_b.latencies_ns.get(B)


def test_the_last_events_that_are_drawn_have_no_gap() -> None:
    """Packets are not drawn, and so do not count."""
    recent = Recent()
    for look in range(2):
        both = [record for at in range(300) for record in ((DELIVER, A, at, 1, look * 300 + at), (PACKET, 1, 0, 1, 0))]
        take(recent, Sends(), *both)
    assert [mark.time_ns for mark in recent.marks] == list(range(600 - MARKS_MAX, 600))


def test_what_is_drawn_of_others_begins_where_that_of_the_busiest_does() -> None:
    async def main() -> None:
        scene = Scene()
        identity = RunIdentity(run="r", group="g", protocol="fifo", options={}, members=2, promises=())
        for process, (name, every) in enumerate((("busy", 1), ("idle", 100))):
            scene.add(name)
            scene.begin(name, describe_part(identity, process, 1, {}, name))
            records = b"".join(pack_record(SEND, process, n, 1, n + 1, n, 0, 8) for n in range(0, 500, every))
            until = len(records) // RECORD_BYTES
            names = NewNames((Address("all", (0, 1)),))
            scene.traced(name, Excerpt(description=None, until=until, names=names, records=records), missed=False)
        drawn = diagram(scene)
        assert drawn is not None
        assert drawn["seq"][:2] == [500 - MARKS_MAX, 501 - MARKS_MAX]
        assert [seq for name, seq in zip(drawn["process"], drawn["seq"], strict=True) if name == "idle"] == [400]

    asyncio.run(main())
