"""Reliable links over a bad network."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quire.model.messages import Body
from quire.simulation.config import NetworkConfig
from quire.simulation.links import BACK_OFF_MAX, LINK_ACK, RETRANSMISSION, Incoming, Outgoing
from tests.simulation.plain import Loose, Plain, engine, later

BODY = Body(b"x", 1)


@given(st.lists(st.integers(0, 19), max_size=200))
def test_whatever_comes_in_whatever_order_goes_up_once_and_in_order(numbers: list[int]) -> None:
    link: Incoming[int] = Incoming(ordered=True, window=8)
    out = [item for number in numbers for item in link.take(number, number)]
    assert out == list(range(len(out)))
    assert len(link.early) < 8


def test_what_lies_beyond_the_window_is_not_held() -> None:
    link: Incoming[int] = Incoming(ordered=True, window=4)
    assert link.take(4, 4) == []
    assert not link.early


def test_a_sender_keeps_at_most_a_window_on_the_way_and_fills_it_as_it_is_acknowledged() -> None:
    link: Outgoing[str] = Outgoing(window=2)
    assert [link.offer(item) for item in "abc"] == [[(0, "a")], [(1, "b")], []]
    assert link.acknowledged(1) == [(2, "c")]
    assert link.overdue() == [(1, "b"), (2, "c")]
    assert link.acknowledged(1) == []
    assert link.acknowledged(3) == []
    assert not link.frames


def test_the_back_off_doubles_up_to_a_bound_and_ends_with_progress() -> None:
    link: Outgoing[str] = Outgoing()
    link.offer("a")
    for _ in range(20):
        link.overdue()
    assert link.back_off == BACK_OFF_MAX
    link.acknowledged(1)
    assert link.back_off == 1


def test_links_repair_loss_duplication_and_reordering_for_a_protocol_that_needs_order() -> None:
    network = NetworkConfig(delay="uniform:1:30", loss=0.3, duplicate=0.2, reorder=True)
    made, log = engine(Plain, network=network)
    for number in range(100):
        made.at(number * 1_000_000, later(made, 0, 1, BODY), None)
    made.run()
    assert log == [[(0, number) for number in range(100)]] * 3
    assert made.links is not None
    assert made.links.counts[RETRANSMISSION] > 10
    assert made.links.counts[LINK_ACK] > 200


def test_a_protocol_that_copes_with_disorder_gets_it_raw_but_complete() -> None:
    made, log = engine(Loose, network=NetworkConfig(delay="uniform:1:30", loss=0.3, duplicate=0.5, reorder=True))
    for _ in range(100):
        made.submit(0, 1, BODY)
    made.run()
    assert set(log[1]) == {(0, number) for number in range(100)}
    assert len(log[1]) > 100
    assert log[1] != sorted(log[1])


def test_without_links_messages_are_missing_and_the_violator_is_heard_no_more() -> None:
    made, log = engine(Plain, network=NetworkConfig(loss=0.3, links="raw"))
    for _ in range(100):
        made.submit(0, 1, BODY)
    made.run()
    assert made.links is None
    assert log[1] == [(0, number) for number in range(len(log[1]))]
    assert len(log[1]) < 100


def test_a_perfect_network_gets_no_links() -> None:
    assert engine(Plain)[0].links is None
    assert engine(Loose, network=NetworkConfig(reorder=True))[0].links is None
