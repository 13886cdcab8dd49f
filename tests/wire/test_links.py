"""Links: frames arrive once and in order, however often the connection breaks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from quire.wire.frames import PACKET, PIECE, Addressed, FrameError, Numbered, Reader
from quire.wire.links import FRAME_COST_BYTES, LONG_BYTES, Incoming, Outgoing


class Link(RuleBasedStateMachine):
    """One direction of a link over connections that may break after any byte. The wire is what was written and not read."""

    @initialize()
    def connect(self) -> None:
        self.outgoing, self.incoming = Outgoing(), Incoming()
        self.sent: list[bytes] = []
        self.taken: list[bytes] = []
        self.acknowledgements: list[int] = []
        self.wire = bytearray()
        self.reader = Reader(start_bytes=16)

    @rule(body=st.binary(max_size=30))
    def send(self, body: bytes) -> None:
        head, body = self.outgoing.push(PACKET, 0, 0, body)
        self.sent.append(body)
        self.wire += head + body

    @rule(count=st.integers(1, 100))
    def carry(self, count: int) -> None:
        self.reader.feed(bytes(self.wire[:count]))
        del self.wire[:count]
        for frame in self.reader.frames():
            assert isinstance(frame, Numbered)
            if self.incoming.is_new(frame.number):
                self.incoming.take(len(frame.body))
                self.taken.append(bytes(frame.body))

    @rule()
    def tell(self) -> None:
        self.incoming.note_acknowledged()
        self.acknowledgements.append(self.incoming.received)

    @rule()
    def hear(self) -> None:
        if self.acknowledgements:
            self.outgoing.acknowledged(self.acknowledgements.pop(0))

    @rule()
    def reconnect(self) -> None:
        self.wire.clear()
        self.acknowledgements.clear()
        self.reader = Reader(start_bytes=16)
        for head, body in self.outgoing.resume(self.incoming.received):
            self.wire += head + body

    @invariant()
    def what_was_taken_is_a_prefix_of_what_was_sent(self) -> None:
        if hasattr(self, "sent"):
            assert self.taken == self.sent[: len(self.taken)]

    @invariant()
    def what_is_kept_is_what_may_be_missing(self) -> None:
        if hasattr(self, "sent"):
            kept = self.sent[self.outgoing.arrived :]
            assert self.outgoing.bytes == sum(map(len, kept)) + FRAME_COST_BYTES * len(kept)
            assert self.outgoing.arrived <= len(self.taken)

    def teardown(self) -> None:
        if hasattr(self, "sent"):
            self.reconnect()
            self.carry(len(self.wire))
            assert self.taken == self.sent


LinkTest = Link.TestCase
LinkTest.settings = settings(max_examples=50, stateful_step_count=40)


@given(sent=st.integers(0, 5), first=st.integers(0, 5), count=st.integers(-3, 2**64))
def test_an_acknowledgement_out_of_range_is_refused_and_changes_nothing(sent: int, first: int, count: int) -> None:
    outgoing = Outgoing()
    for _ in range(sent):
        outgoing.push(PACKET, 0, 0, b"x")
    first = min(first, sent)
    outgoing.acknowledged(first)
    if first <= count <= sent:
        outgoing.acknowledged(count)
        assert outgoing.arrived == count
    else:
        with pytest.raises(FrameError, match=f"it acknowledged {count} frames, but {first} to {sent} is possible"):
            outgoing.acknowledged(count)
        assert outgoing.arrived == first


def test_a_gap_is_refused_and_a_repetition_dropped() -> None:
    incoming = Incoming()
    assert incoming.is_new(0)
    incoming.take(1)
    assert not incoming.is_new(0)
    with pytest.raises(FrameError, match="frames 1 to 2 are missing"):
        incoming.is_new(3)
    assert incoming.is_new(1)


def test_a_frame_that_was_not_taken_is_asked_for_again() -> None:
    outgoing, incoming = Outgoing(), Incoming()
    outgoing.push(PACKET, 0, 0, b"spoilt on its way")
    assert incoming.is_new(0)
    (again,) = outgoing.resume(incoming.received)
    assert again[1] == b"spoilt on its way"
    assert incoming.is_new(0)


def test_what_the_peer_has_is_not_sent_again_on_a_new_connection() -> None:
    outgoing = Outgoing()
    for number in range(3):
        outgoing.push(PACKET, 0, 0, b"%d" % number)
    assert [body for _, body in outgoing.resume(2)] == [b"2"]
    assert outgoing.bytes == 1 + FRAME_COST_BYTES


@pytest.mark.parametrize("received", [1, 2, 3])
def test_after_something_was_abandoned_a_link_goes_on_where_the_peer_is(received: int) -> None:
    outgoing = Outgoing()
    outgoing.push_addressed(0, 1, 0, b"old")
    outgoing.push(PIECE, 0, 0, b"old")
    outgoing.push_addressed(0, 1, 0, b"old")
    outgoing.abandon()
    outgoing.push_addressed(0, 1, 0, b"new")
    reader = Reader()
    for head, body in outgoing.resume(received):
        reader.feed(head + body)
    frames = [
        (frame.number, frame.sender, frame.addressee, bytes(frame.body))
        for frame in reader.frames()
        if isinstance(frame, Addressed)
    ]
    # The first says that pieces which the peer may have belong to nothing.
    assert frames == [(received, 0, 0, b""), (received + 1, 1, 0, b"new")]
    outgoing.acknowledged(received + 2)
    assert outgoing.bytes == 0


def test_a_peer_cannot_have_more_than_was_sent_before_something_was_abandoned() -> None:
    outgoing = Outgoing()
    outgoing.push(PACKET, 0, 0, b"x")
    outgoing.abandon()
    with pytest.raises(FrameError, match="it has 9 frames, but 0 to 2 is possible"):
        outgoing.resume(9)


def test_a_long_payload_is_on_its_way_until_the_last_frame_of_it_has_arrived() -> None:
    outgoing, payload = Outgoing(), bytes(LONG_BYTES)
    for piece in (payload[:1000], payload[1000:]):
        outgoing.push(PACKET, 0, 0, piece)
    outgoing.note_payload(payload)
    outgoing.acknowledged(1)
    assert outgoing.is_on_its_way(payload)
    outgoing.acknowledged(2)
    assert not outgoing.is_on_its_way(payload)


def test_the_sender_is_told_after_so_many_frames_or_bytes() -> None:
    incoming = Incoming()
    for _ in range(63):
        incoming.take(10)
        assert not incoming.acknowledge_due()
    incoming.take(10)
    assert incoming.acknowledge_due()
    incoming.note_acknowledged()
    assert not incoming.unacknowledged()
    incoming.take(1 << 18)
    assert incoming.acknowledge_due()
    incoming.note_acknowledged()
    incoming.take(10)
    assert not incoming.acknowledge_due(), "what it was told of counts no more"
