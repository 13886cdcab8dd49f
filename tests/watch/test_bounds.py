"""Fifty members and a day: what is kept of them stays small, and what a page is told, too."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from quire.live import spool
from quire.live.observing.feed import Feed, Observation
from quire.live.observing.status import HeldBack, LinkStatus, Status, ViewStatus
from quire.trace.kinds import DELIVER, SEND
from quire.trace.log import Address, EventLog, Names
from quire.trace.parts.description import RunIdentity, describe_part
from quire.trace.parts.frames import NewNames
from quire.trace.records import ADDRESS, FIRST, KIND, RECORD_BYTES, pack_record
from quire.trace.tables import as_records
from quire.trace.tail import Excerpt, TraceTail
from quire.watch.incidents import INCIDENTS_MAX, Incidents
from quire.watch.recent import MARKS_MAX
from quire.watch.scene import Scene
from quire.watch.series import COARSE, FINE, Series
from quire.watch.snapshot import history, snapshot

MEMBERS = [f"m{number}" for number in range(50)]


def test_a_day_of_looks_is_some_hundred_points() -> None:
    series = Series()
    for look in range(3 * 86_400):
        series.add(look / 2, float(look))
    assert (len(series.fine), len(series.coarse)) == (FINE, COARSE)
    assert series.coarse[-1][1] == 3 * 86_400 - 1


def status_of(me: str) -> Status:
    links = tuple(LinkStatus(peer=peer, connected=True, unacknowledged_bytes=1000) for peer in MEMBERS if peer != me)
    held = tuple(HeldBack(origin=me, first=n, count=9, waits_for=("m1",), because="it is not known yet") for n in range(20))
    return Status(
        kind="group", group="board", me=me, protocol="single-phase", condition="running", view=ViewStatus(7, tuple(MEMBERS)),
        members=tuple(MEMBERS), sent=10**9, delivered=dict.fromkeys(MEMBERS, 10**9), links=links, waiting=held,
    )  # fmt: skip


def test_fifty_members_are_told_in_a_bounded_number_of_bytes() -> None:
    async def main() -> None:
        scene = Scene()
        for name in MEMBERS:
            scene.add(name)
        for _ in range(40):
            for name in MEMBERS:
                scene.stands(name, STATUSES[name])
        assert len(msgspec.json.encode(snapshot(scene, None))) < 1 << 19
        assert sum(len(each["delivered"]["fine"]) for each in history(scene).values()) <= FINE * len(MEMBERS)

    asyncio.run(main())


STATUSES = {name: status_of(name) for name in MEMBERS}


def test_the_last_events_of_a_member_are_kept_and_no_more() -> None:
    async def main() -> None:
        scene = Scene()
        scene.add("a")
        identity = RunIdentity(run="r", group="g", protocol="fifo", options={}, members=1, promises=())
        description = describe_part(identity, 0, 1)
        scene.begin("a", description)
        names = NewNames((Address("all", (0,)),))
        for block in range(50):
            records = b"".join(pack_record(DELIVER, 0, block * 100 + n, 1, block * 100 + n, n, 0, 8) for n in range(100))
            first = block * 100
            excerpt = Excerpt(description=description, first=first, rows=first, until=first + 100, names=names, records=records)
            scene.traced("a", excerpt, missed=False)
        assert len(scene.find("a").recent.marks) == MARKS_MAX

    asyncio.run(main())


def test_a_tail_forgets_what_has_no_room_and_says_so() -> None:
    tail, names = TraceTail(kept_bytes=100 * RECORD_BYTES), Names([Address("all", (0,))])
    for block in range(30):
        tail.append(names, b"".join(pack_record(DELIVER, 0, n, 2, n, n, 0, 8) for n in range(10)))
        assert tail.excerpt(0).until == (block + 1) * 10
    late = tail.excerpt(5)
    assert (late.first, late.rows, late.until) == (200, 400, 300)
    assert len(late.records) == 100 * RECORD_BYTES


def test_names_that_are_used_once_are_forgotten_and_records_keep_their_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "NAMES_MAX", 200)
    log, tail = EventLog(0, [Address("all", (0,))]), TraceTail(kept_bytes=300 * RECORD_BYTES)
    spooling = spool.Spool(log, None, tail=tail)
    for block in range(40):
        for number in range(block * 50, block * 50 + 50):
            log.send(0, number, 1, number, 0, log.address(Address("all", (0,), "k", "w", f"{number}.0")), 8)
            log.packet("WRITE", 2, number, 0, 8, 8)
            log.deliver(0, number, 1, number, 0, 0, 8)
        spooling.spill()
        assert len(log.names.addresses) <= 300
    late = tail.excerpt(0)
    addresses = late.meaning().addresses
    for record in as_records(late.records).tolist():
        if record[KIND] == SEND:
            assert addresses[record[ADDRESS]].txn == f"{record[FIRST]}.0"
        elif record[KIND] == DELIVER:
            assert addresses[record[ADDRESS]] == Address("all", (0,))
        else:
            assert late.names.packet_types[record[ADDRESS]] == "WRITE"
    assert late.until == 40 * 150


def test_what_is_not_settled_yet_holds_back_the_logical_time() -> None:
    log = EventLog(0)
    log.send(0, 0, 1, 5, 0, 0, 8)
    waits = log.defer_send(0, 1, 1, 7, 0, 0, 8)
    log.send(0, 2, 1, 9, 0, 0, 8)
    log.take()
    assert log.reached(9) == 6
    assert not log.renew_names()
    log.settle(waits, 0)
    log.take()
    assert log.reached(9) == 9
    assert log.renew_names()


def test_happenings_and_feeds_are_bounded() -> None:
    incidents = Incidents()
    for number in range(3 * INCIDENTS_MAX):
        incidents.told("a", Observation(number=number, time_ns=number, kind="unread", why="it does not read"))
        incidents.installed("a", number, ("a", "b"), number)
    assert len(incidents.latest(10**6)) <= INCIDENTS_MAX

    async def main() -> None:
        feed = Feed()
        for _ in range(5000):
            feed.tell("gap")
        assert len(feed.since(0)) == 1024

    asyncio.run(main())
