"""Who holds others up, and what a client may have without a number: bounds that flow control rests on."""

from __future__ import annotations

import pytest

from quire.model.messages import Run, pack
from quire.protocols.sequencing import Client, SequencingOptions
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.errors import Overload
from tests.sequencing.test_hostile import BODY, DIRECTORY, ME, OTHER, SEQUENCER, UNITS, sent, sequencer


def test_a_sequencer_knows_by_whom_others_are_held_up() -> None:
    made = sequencer(history=2, window=2)
    for counter in range(2):
        made.receive(0, ME, sent(counter))
    assert not made.holding_up(), "nobody waits yet"
    made.receive(0, ME, sent(2, acked=2))
    assert made.holding_up() == {OTHER: ("G", 0)}, "who waits only for itself holds nobody up"
    made.receive(0, OTHER, wire.DoMulticast("G", OTHER, 0, 0, Run(OTHER, 0, 1, BODY)))
    assert made.holding_up() == {ME: ("G", 0), OTHER: ("G", 0)}
    made.receive(0, ME, wire.Fetch(ME, {"G": 2}))
    assert made.holding_up() == {OTHER: ("G", 0)}
    made.receive(0, OTHER, wire.Fetch(OTHER, {"G": 1}))
    assert made.groups["G"].seq == 3, "there was room for one more"
    assert not made.holding_up(), "only its own message still waits"
    made.receive(0, ME, sent(3, acked=2))
    assert made.holding_up() == {OTHER: ("G", 1)}, "it has moved, and another waits again"
    made.receive(0, DIRECTORY, wire.Evict((OTHER,)))
    assert not made.holding_up()
    assert made.waiting == {"G": {ME}}
    made.receive(0, ME, wire.Fetch(ME, {"G": 3}))
    assert not made.waiting, "its message has a number"


def test_a_client_sends_only_as_many_bytes_without_numbers_as_a_sequencer_keeps() -> None:
    client = Client(ME, UNITS, DIRECTORY, SequencingOptions(history_bytes=10))
    client.locations["G"] = SEQUENCER
    client.multicast(0, "G", pack([b"x" * 50]), 1)
    with pytest.raises(Overload, match="1 messages of 50 bytes have no number yet"):
        client.multicast(0, "G", pack([b"y"]), 1)
    client.receive(0, SEQUENCER, wire.Ack("G", 0, 1, (), 0))
    client.multicast(0, "G", pack([b"y" * 4, b"z" * 6]), 2)
    assert (client.outbox.messages, client.outbox.bytes) == (2, 10)
