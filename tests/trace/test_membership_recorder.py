"""What a process records that goes on with its journal, is alone, or passes on what others sent."""

from __future__ import annotations

from quire.model.messages import Body, Run
from quire.model.payloads import Messages
from quire.protocols.single_phase.packets import Operations
from quire.trace.log import EventLog
from quire.trace.membership_recorder import MembershipRecorder
from quire.views.codec import GroupCodec
from quire.views.core import GroupSettings
from quire.views.effects import Deliver, Effect, Install, Save, Send
from quire.views.introductions import Introduction
from quire.views.member import Member
from quire.views.packets import Data, Entry
from quire.views.process import Process
from quire.views.records import Decided, Delivered, Entered, Learned, Record, Sent, Started, Took
from quire.views.view import Participant, View

FOUNDERS = (Participant("0", 1), Participant("1", 1), Participant("2", 1))
RULES = GroupSettings(founders=FOUNDERS, protocol="single-phase", journal=True)


class Log(EventLog):
    def __init__(self) -> None:
        super().__init__(2)
        self.kept: list[int] = []
        self.sends: list[tuple[int, int]] = []
        self.deliveries: list[tuple[int, int]] = []

    def resumed(self, group: str, number: int, incarnation: int, kept: int, lamport: int, time_ns: int) -> None:
        self.kept.append(kept)
        super().resumed(group, number, incarnation, kept, lamport, time_ns)

    def send(self, origin: int, first: int, count: int, *rest: int) -> None:
        self.sends.append((origin, count))
        super().send(origin, first, count, *rest)

    def deliver(self, origin: int, first: int, count: int, *rest: int) -> None:
        self.deliveries.append((origin, count))
        super().deliver(origin, first, count, *rest)


def data(origin: int, count: int) -> Data:
    packet = Operations(1, Run(origin, 0, count, Body(b"x" * count, 1)))
    return Data(2, packet, f"session {origin}", 1, (0, 0, 0), 0, None)


def test_what_the_journal_replays_is_kept_and_no_delivery() -> None:
    """What it had delivered beyond that, it forgot: it may come as a state, and never as messages."""
    view = View(2, FOUNDERS, {one.name: one.incarnation for one in FOUNDERS})
    records: list[Record] = [
        Started(1, "session 2", "2", 1, founds=True),
        Entered(view, {}, None),
        Took(data(0, 3)),
        Took(data(1, 2)),
        Delivered(0, 3),
        Delivered(1, 2),
    ]
    member = Member.restart(RULES, records)
    log = Log()
    me = Introduction(
        group="test", name="2", life=7, incarnation=member.core.me.incarnation, address="127.0.0.1:7002", facts="", addresses={}
    )
    process = Process(member, me)
    MembershipRecorder(process, log, lambda: 1, lambda _: None)

    replayed: list[Effect] = [effect for effect in process.start(0.0) if isinstance(effect, Deliver)]
    assert len(replayed) == 2, "the application is brought to its state again"
    assert (log.kept, log.deliveries) == ([5], [])


def test_what_was_learned_while_the_process_was_no_member_is_no_delivery_after_a_restart_either() -> None:
    """Others may have recorded it before what this process had delivered in the view that it has forgotten."""
    view = View(2, FOUNDERS, {one.name: one.incarnation for one in FOUNDERS})
    run = Run(1, 0, 2, Body(b"xx", 1))
    records: list[Record] = [
        Started(1, "session 2", "2", 1, founds=True),
        Entered(view, {}, None),
        Took(data(0, 3)),
        Delivered(0, 3),
        Decided(None),
        Started(2, "session 2", "2", 1, founds=False),
        Learned(Entry(2, 3, "1", 1, run, "session 1", 1)),
        Learned(Entry(3, 2, "1", 1, run, "session 1", 3)),
    ]
    codec = GroupCodec(RULES.protocol)
    member = Member.restart(RULES, [codec.record(b"".join(codec.encode_record(record))) for record in records])
    me = Introduction(group="test", name="2", life=7, incarnation=3, address="127.0.0.1:7002", facts="", addresses={})
    process, log = Process(member, me), Log()
    MembershipRecorder(process, log, lambda: 1, lambda _: None)

    replayed = [effect for effect in process.start(0.0) if isinstance(effect, Deliver)]
    assert (len(replayed), log.kept, log.deliveries) == (3, [], [])


def test_who_is_alone_has_sent_what_it_has_written_though_it_delivers_it_only_after_a_restart() -> None:
    rules = GroupSettings(founders=(Participant("2", 1),), protocol="single-phase", journal=True)
    member = Member(rules, Participant("2", 1), "session", founds=True)
    me = Introduction(group="test", name="2", life=7, incarnation=1, address="127.0.0.1:7002", facts="", addresses={})
    process, log = Process(member, me), Log()
    MembershipRecorder(process, log, lambda: 1, lambda _: None)
    wanted = process.start(0.0)
    while member.core.mode != "normal":
        saved = [effect.number for effect in wanted if isinstance(effect, Save)]
        wanted = process.synced(0.0, saved[-1]) if saved else process.time(process.due)
    wanted = process.submit(1.0, Messages.of([b"x"] * 3))
    operation = [effect.number for effect in wanted if isinstance(effect, Save)][-1]

    written = process.synced(1.0, operation)

    assert any(isinstance(effect, Save) and isinstance(effect.record, Sent) for effect in written)
    assert (log.sends, log.deliveries) == ([(2, 3)], [])


def test_what_a_process_passes_on_it_has_not_sent() -> None:
    member = Member(RULES, FOUNDERS[2], "session 2", founds=True)
    me = Introduction(group="test", name="2", life=7, incarnation=1, address="127.0.0.1:7002", facts="", addresses={})
    process, log = Process(member, me), Log()
    recorder = MembershipRecorder(process, log, lambda: 1, lambda _: None)
    recorder.saw(Install(View(2, FOUNDERS, {}), joined=False))
    recorder.saw(Send(data(0, 3), ("1",)))
    recorder.saw(Send(data(2, 2), ("0",)))
    recorder.saw(Send(data(2, 2), ("1",)))
    assert log.sends == [(2, 2)]
