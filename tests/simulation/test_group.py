"""A simulated group to talk to."""

from __future__ import annotations

import pytest

from quire.model.errors import BadInput
from quire.simulation.group import Group


def test_pipelined_submissions_come_out_in_one_order_everywhere() -> None:
    group = Group(members=4, delay="uniform:1:40", seed=3)
    handles = [group.submit(member, bytes([member, step])) for step in range(10) for member in range(4)]
    assert not all(handle.delivered for handle in handles)
    group.settle()
    assert all(handle.delivered for handle in handles)
    orders = [group.delivered(member) for member in range(4)]
    assert len(orders[0]) == 40
    assert all(order == orders[0] for order in orders)
    keys = [message.order_key for message in orders[0]]
    assert keys == sorted(keys)  # type: ignore[type-var]
    assert {message.payload for message in orders[0]} == {bytes([member, step]) for step in range(10) for member in range(4)}


def test_executing_lets_just_enough_time_pass() -> None:
    group = Group(members=3)
    message = group.execute(2, b"a")
    assert (message.origin, message.seq, message.payload) == (2, 0, b"a")
    assert group.now_ms == 20
    assert group.execute(0, b"b").seq == 0
    group.settle()
    assert [message.payload for message in group.delivered(1)] == [b"a", b"b"]


def test_two_submissions_of_a_paused_member_keep_their_order() -> None:
    group = Group(members=3)
    group.pause(1)
    group.submit(0, b"x")
    group.submit(1, b"first")
    group.submit(1, b"second")
    group.advance(100)
    assert not group.delivered(1)
    group.resume(1)
    group.settle()
    own = [message.payload for message in group.delivered(0) if message.origin == 1]
    assert own == [b"first", b"second"]


def test_what_can_never_be_delivered_is_said() -> None:
    group = Group(members=3)
    group.execute(1, b"before")
    group.pause(2)
    with pytest.raises(BadInput, match="cannot be delivered"):
        group.execute(1, b"a")


@pytest.mark.parametrize(
    "settings",
    [
        {"members": 0},
        {"protocol": "nonsense"},
        {"options": {"acks": "loud"}},
        {"delay": "slow"},
        {"loss": 2.0},
        {"links": "good"},
    ],
)
def test_a_group_that_cannot_be_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        Group(**settings)  # type: ignore[arg-type]


def test_there_is_no_member_outside_the_group() -> None:
    with pytest.raises(BadInput, match="no member 7"):
        Group(members=3).submit(7, b"a")
