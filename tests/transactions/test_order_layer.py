"""Where requests wait until none can come before them: by hand, what a replica serves when."""

from __future__ import annotations

from quire.model.packets import Packet
from quire.protocols.node import Send
from quire.protocols.transactions.packets import Beat, Done, Write
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.processor import Processor
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.timestamps import Timestamp, Version

REPLICA, SLOW, QUICK = 0, 1, 2


class Served:
    """A replica with two clients, and whom it has served so far, in order."""

    def __init__(self) -> None:
        settings = Settings(order="stable")
        self.processor = Processor(REPLICA, Placement(1), (SLOW, QUICK), settings, lambda: 0.0)
        self.clients: list[int] = []

    def hear(self, source: int, packet: Packet) -> None:
        for effect in self.processor.receive(0, source, packet):
            if isinstance(effect, Send) and isinstance(effect.packet, Done):
                self.clients += effect.to


def first_write(client: int, lc: int) -> Write:
    t = Timestamp(1, client)
    return Write(sq=1, ack=0, lc=lc, t=t, number=1, key=f"of {client}", version=Version(*t, 1), value=b"x")


def test_a_request_waits_until_no_client_can_send_an_earlier_one() -> None:
    served = Served()
    served.hear(QUICK, first_write(QUICK, lc=3))
    assert served.clients == []
    served.hear(SLOW, Beat(sq=0, ack=0, lc=2))
    assert served.clients == [], "it may still send at time 3, and comes first then"
    served.hear(SLOW, Beat(sq=0, ack=0, lc=3))
    assert served.clients == [QUICK]


def test_a_heartbeat_that_overtook_a_request_does_not_say_that_there_is_none() -> None:
    served = Served()
    served.hear(QUICK, first_write(QUICK, lc=3))
    served.hear(SLOW, Beat(sq=1, ack=0, lc=5))
    assert served.clients == []
    served.hear(SLOW, first_write(SLOW, lc=1))
    assert served.clients == [SLOW]
    served.hear(SLOW, Beat(sq=1, ack=0, lc=5))
    assert served.clients == [SLOW, QUICK]
