"""Who takes over a unit goes on at once: it says that it works, and what may have been lost with the one before."""

from __future__ import annotations

from quire.protocols.node import Effects, Send
from quire.protocols.sequencing import packets as inner
from quire.protocols.sequencing.events import Event
from quire.protocols.sequencing.failover import SequencerProcess
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import CLIENT, Configuration
from tests.sequencing.failover.test_rules import REG, UNIT, A, B, C, ask, message, pair, process, sends

SECOND = Configuration(UNIT, 1, B, (C,))


def taken_over() -> tuple[SequencerProcess, Effects]:
    """A backup that has become primary, after a message was numbered of which nobody was told, and what it says when it begins
    to work."""
    first, primary = pair()
    [record] = sends(ask(first, message(0)), wire.Record)
    primary.receive(0, A.address, record)
    backup = process(C, SECOND)
    [snapshot] = sends(primary.receive(0, REG, wire.Configured(5, (SECOND,))), wire.Snapshot)
    [ack] = sends(backup.receive(0, B.address, snapshot), wire.Recorded)
    assert sends(primary.receive(0, C.address, ack), wire.InSync)
    return primary, primary.receive(0, REG, wire.Live(UNIT, 1))


def test_who_begins_to_work_tells_all_clients_that_it_does() -> None:
    """Those who had heard of it before have asked too early."""
    [(to, found)] = [(each.to, each.packet) for each in taken_over()[1] if isinstance(each, Send)]
    assert to == (0, 1)
    assert isinstance(found, wire.Configured)
    assert [(each.primary, each.live) for each in found.configurations] == [(B, True)]


def test_who_takes_over_sends_at_once_what_a_client_lacks_of_what_was_numbered_before() -> None:
    primary, _ = taken_over()
    report = wire.Letter(UNIT, CLIENT, 1, inner.Fetch(1, {"G": 0}, ()))
    told = [letter.packet for letter in sends(primary.receive(0, 1, report), wire.Letter)]
    assert [(type(each), each.seq) for each in told] == [(Event, 1)]
