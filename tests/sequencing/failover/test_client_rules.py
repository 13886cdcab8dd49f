"""What a client does when sequencers fail: what it believes, repeats and gives up."""

from __future__ import annotations

from quire.model.messages import Run, pack
from quire.model.packets import Packet
from quire.protocols.node import Effects, Send
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


def letters(effects: Effects, kind: type[Packet]) -> list[Packet]:
    """What is in letters, of this kind."""
    found = (each.packet for each in effects if isinstance(each, Send) and isinstance(each.packet, wire.Letter))
    return [letter.packet for letter in found if isinstance(letter.packet, kind)]


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


def test_a_client_asks_again_when_who_runs_a_unit_says_so_itself_and_then_no_more() -> None:
    """What it asked before, because it had heard of that from others, came too early and was ignored."""
    client = member()
    client.multicast(0, "G", pack([b"x"]), 1)

    def asks(source: int, packet: Packet) -> bool:
        return bool(letters(client.receive(0, source, packet), inner.DoMulticast))

    news = wire.Configured(4, (Configuration(UNIT, 2, B, (C,), live=True),))
    assert asks(REG, news)
    assert not asks(REG, news)
    assert asks(B.address, news)
    assert not asks(B.address, news)
    assert not asks(B.address, wire.Letter(CLIENT, UNIT, 2, numbered(1)))


def test_a_client_asks_again_when_a_unit_first_speaks_in_an_epoch() -> None:
    client = member()
    client.multicast(0, "G", pack([b"x"]), 1)
    client.receive(0, REG, wire.Configured(4, (Configuration(UNIT, 2, B, (C,), live=True),)))
    for number, repeats in ((1, 1), (2, 0)):
        effects = client.receive(0, B.address, wire.Letter(CLIENT, UNIT, 2, numbered(number)))
        assert len(letters(effects, inner.DoMulticast)) == len(letters(effects, inner.Fetch)) == repeats


def test_a_client_is_told_that_a_group_is_lost_and_goes_on_without_it() -> None:
    client = member()
    client.multicast(0, "G", pack([b"x"]), 1)
    client.receive(0, UNIT, wire.Letter(CLIENT, UNIT, 0, inner.NewLocation("G", -1)))
    effects = client.receive(0, REG, wire.Letter(CLIENT, REGISTER, 0, inner.Located("G", inner.LOST)))
    assert [type(each.error) for each in effects if isinstance(each, Failed)] == [GroupLost]
    assert client.idle()
    assert not client.hold.delivered
    assert "G" not in client.locations
