"""A replica that lost its disk takes over from the others whatever would make it refuse a vote."""

from __future__ import annotations

import pytest

from quire.protocols.transactions.quorum_packets import Compared, Granted, Have, Reach
from quire.protocols.transactions.votes import ABORT
from tests.transactions import faults
from tests.transactions.by_hand import Replicas, at


@pytest.mark.parametrize("forgetful", [False, True])
def test_what_others_have_read_stays_read(forgetful: bool) -> None:
    """Transaction 5 has read at a majority, so transaction 3, which is older, must never find one for its write.

    What is read is known by key, or, where a replica keeps that in memory and was restarted, as a floor for all keys.
    """
    three = Replicas()
    for replica in (0, 1):
        assert isinstance(three.read(5, replica), Granted)
    if forgetful:
        three.restart_without_read_timestamps(0)
    three.lose_disk(1, asks=(0, 2))
    assert [three.grants(3, replica) for replica in range(3)] == [False, False, True]
    assert three.grants(99, 1), "a younger one is taken"


def test_a_prewrite_that_others_told_of_is_no_vote() -> None:
    """Transaction 5 has read at a majority without waiting for transaction 3, which one replica alone had voted for."""
    three = Replicas()
    assert three.grants(3, 0)
    for replica in (1, 2):
        assert isinstance(three.read(5, replica), Granted)
    three.lose_disk(1, asks=(0, 2))
    assert three.read(7, 1) is None, "it waits for what may still be written"
    assert not three.grants(3, 1)


def test_a_replica_says_nothing_until_enough_others_have_told_it_what_it_may_have_said() -> None:
    """A majority may have been this replica and either of the others."""
    three = Replicas()
    three.lose_disk(1, asks=(0,), enough=False)
    assert three.nodes[1].recovering
    assert three.write(1, 1) is None, "it says nothing before it knows what it has said"
    three.lose_disk(1, asks=(2, 0))
    assert three.grants(1, 1)


def test_a_promise_that_was_lost_is_kept_by_whoever_knows_of_it() -> None:
    three = Replicas()
    for replica in range(3):
        assert three.grants(1, replica)
    older, younger = three.begin_to_end(1, 0), three.begin_to_end(1, 2)
    assert older.ballot < younger.ballot
    assert three.promise(younger, by=1)
    three.lose_disk(1, asks=(0, 2))
    assert three.promise(older, by=1) is None


def test_of_what_others_have_accepted_the_latest_is_taken_over() -> None:
    three = Replicas()
    for replica in range(3):
        assert three.grants(1, replica)
    three.ask_to_commit(1, 0)
    # Replica 2 proposes to abort, and before anybody hears that replica 1 has accepted that, 1 loses its disk.
    proposal = three.propose(three.promise(three.begin_to_end(1, 2), by=1), by=1)
    assert proposal.decision == ABORT
    three.tell(1, proposal, 2)
    three.lose_disk(1, asks=(0, 2))
    assert three.promise(three.begin_to_end(1, 0), by=1) is None, "its ballot is older"
    promised = three.promise(three.begin_to_end(1, 0), by=1)
    assert promised is not None
    assert promised.accepted == (proposal.ballot, ABORT)


@pytest.mark.parametrize("wrong", [False, True])
def test_the_transaction_at_the_horizon_may_still_be_under_way(wrong: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five, replica 4 alone holds transaction 3, so that nothing from there on is forgotten. Replica 0 asks the others."""
    if wrong:
        faults.a_lost_disk_opens_what_was_closed(monkeypatch)
    five = Replicas(5)
    assert five.grants(3, 4)
    for number in (1, 2, 4, 5, 6, 7):
        five.decide(number)
    five.talk(Reach, Have, Compared)
    assert five.horizons() == [3] * 5
    five.lose_disk(0, asks=(1, 2, 3))
    assert (five.nodes[0].state.closed == at(3)) is not wrong
    assert five.grants(3, 0)
    assert five.grants(2, 0) is wrong, "what is forgotten is not taken for new"
