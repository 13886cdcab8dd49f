"""The oracles themselves, on histories small enough to be judged by eye."""

from __future__ import annotations

import pytest

from quire.model.messages import MessageId
from quire.model.orders import OF_ANY_MESSAGES, Guarantee
from tests.kit.oracles import ORACLES, History

A0, A1, B0, C0 = MessageId(0, 0), MessageId(0, 1), MessageId(1, 0), MessageId(2, 0)
NOTHING: frozenset[MessageId] = frozenset()

PAST = {A0: NOTHING, A1: frozenset({A0}), B0: frozenset({A0}), C0: NOTHING}
"""Member 0 sends twice; member 1 sends after it delivered the first; member 2 sends on its own."""


def history(*logs: list[MessageId]) -> History:
    return History(PAST, dict(enumerate(logs)))


GOOD = [A0, A1, B0, C0]


@pytest.mark.parametrize("guarantee", OF_ANY_MESSAGES)
def test_nothing_is_wrong_with_equal_logs_that_respect_causality(guarantee: Guarantee) -> None:
    assert ORACLES[guarantee](history(GOOD, GOOD, GOOD)) is None


@pytest.mark.parametrize(
    ("guarantee", "logs", "witness"),
    [
        (Guarantee.INTEGRITY, [[A0, A0]], "member 0 delivered 0:0 2 times"),
        (Guarantee.INTEGRITY, [[MessageId(7, 7)]], "member 0 delivered 7:7, which nobody sent"),
        (Guarantee.AGREEMENT, [GOOD, [A0, A1, B0]], "member 1 never delivered 2:0"),
        (Guarantee.AGREEMENT, [[A0, B0]], "member 0 never delivered 0:1"),
        (Guarantee.FIFO, [[A1, A0]], "member 0 delivered 0:1 before 0:0"),
        (Guarantee.FIFO, [[A1]], "member 0 delivered 0:1 before 0:0"),
        (Guarantee.CAUSAL, [[B0, A0]], "member 0 delivered 1:0 before 0:0, which happened before it"),
        (Guarantee.TOTAL, [[A0, C0], [C0, A0]], "member 0 delivered 0:0 before 2:0, and member 1 the other way round"),
        (Guarantee.ACYCLIC, [[A0, C0], [C0, A0]], "the delivery orders have the cycle 2:0 < 0:0 < 2:0"),
    ],
)
def test_each_violation_has_its_witness(guarantee: Guarantee, logs: list[list[MessageId]], witness: str) -> None:
    assert ORACLES[guarantee](history(*logs)) == witness


def test_a_cycle_through_three_members_is_no_breach_of_the_pairwise_order() -> None:
    cyclic = history([A0, B0], [B0, C0], [C0, A0])
    assert ORACLES[Guarantee.TOTAL](cyclic) is None
    assert ORACLES[Guarantee.ACYCLIC](cyclic) is not None


def test_a_message_that_only_a_crashed_member_sent_is_not_due() -> None:
    survivors = History(PAST, {0: [A0, A1], 1: [A0, A1]})
    assert ORACLES[Guarantee.AGREEMENT](survivors) == "member 0 never delivered 1:0"
    without = {message: past for message, past in PAST.items() if message.origin != 1}
    assert ORACLES[Guarantee.AGREEMENT](History(without, survivors.logs)) is None
