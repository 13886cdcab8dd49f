"""What a client does when sequencers fail: what it believes, repeats and gives up."""

from __future__ import annotations

from quire.model.messages import Run, pack
from quire.protocols.node import Send
from quire.protocols.sequencing import packets as inner
from quire.protocols.sequencing.errors import GroupLost
from quire.protocols.sequencing.events import Event
from quire.protocols.sequencing.failover import SurvivingClient
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import CLIENT, REGISTER, Configuration
from quire.protocols.sequencing.notices import Delivered, Failed
from tests.sequencing.failover.test_rules import OPTIONS, OTHER, REG, UNIT, B, C


def member() -> SurvivingClient:
    client = SurvivingClient(0, (10, 11, 12), (UNIT, OTHER), (REG,), OPTIONS)
    client.locations["G"] = UNIT
    client.hold.delivered["G"] = 0
    client.views["G"] = (0, 1)
    return client


def numbered(seq: int) -> Event:
    return Event("G", seq, 0, 1, -1, Run(1, seq, 1, pack([b"m"])))


def test_a_client_believes_nothing_of_an_epoch_that_is_over() -> None:
    client = member()
    assert client.receive(0, 11, wire.Letter(CLIENT, UNIT, 3, numbered(1)))
    assert not client.receive(0, 10, wire.Letter(CLIENT, UNIT, 2, numbered(2)))
    assert client.hold.delivered == {"G": 1}
    effects = client.receive(0, 11, wire.Letter(CLIENT, UNIT, 3, numbered(2)))
    assert [each for each in effects if isinstance(each, Delivered)]


def test_a_client_repeats_what_has_no_answer_when_another_runs_the_unit() -> None:
    client = member()
    [first] = client.multicast(0, "G", pack([b"x"]), 1)
    assert isinstance(first, Send)
    assert first.to == (UNIT,)
    effects = client.receive(0, REG, wire.Configured(4, (Configuration(UNIT, 2, B, (C,), live=True),)))
    assert isinstance(first.packet, wire.Letter)
    again = wire.Letter(UNIT, CLIENT, 2, first.packet.packet)
    assert [each.to for each in effects if isinstance(each, Send) and each.packet == again] == [(B.address,)]


def test_a_client_is_told_that_a_group_is_lost_and_goes_on_without_it() -> None:
    client = member()
    client.multicast(0, "G", pack([b"x"]), 1)
    client.receive(0, UNIT, wire.Letter(CLIENT, UNIT, 0, inner.NewLocation("G", -1)))
    effects = client.receive(0, REG, wire.Letter(CLIENT, REGISTER, 0, inner.Located("G", inner.LOST)))
    assert [type(each.error) for each in effects if isinstance(each, Failed)] == [GroupLost]
    assert client.idle()
    assert not client.hold.delivered
    assert "G" not in client.locations
