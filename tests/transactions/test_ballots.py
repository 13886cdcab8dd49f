"""Several replicas end one transaction at once: whatever is lost or late, all learn one outcome.

Random runs seldom have two ballots under way and a packet of the older one late in just the right place; these do.
"""

from __future__ import annotations

from quire.protocols.transactions.quorum_packets import Accepted, Decide, Ended, Prepare, Promised, Propose, Rejected
from quire.protocols.transactions.votes import ABORT, FIRST
from tests.transactions.by_hand import Replicas, at, written


def left_behind(*, committing_at: int) -> Replicas:
    """Transaction 1 has written everywhere, and its client vanished when one replica alone had heard that it commits."""
    three = Replicas()
    for replica in range(3):
        assert three.grants(1, replica)
    three.ask_to_commit(1, committing_at)
    return three


def test_a_replica_that_accepts_a_ballot_takes_no_older_one_afterwards() -> None:
    three = left_behind(committing_at=2)
    # Replica 0 begins, and the promise of 1 is late. Meanwhile 2 ends the transaction with 1's promise and 0's vote.
    late = three.promise(three.begin_to_end(1, 0), by=1)
    proposal = three.propose(three.promise(three.begin_to_end(1, 2), by=1), by=1)
    assert proposal.decision == written(1)
    three.accept(proposal, by=0)
    assert three.outcome(1, 2) == written(1)
    # The promise comes, and 0 proposes to abort; it has voted for a younger ballot since, and must not vote for this one.
    assert three.propose(late, by=1).decision == ABORT
    # Replica 0 tries again. Nobody but itself can tell it that the transaction may have committed.
    three.end(1, ender=0, helper=1)
    assert three.outcome(1, 0) == written(1)


def test_of_several_accepted_decisions_the_one_of_the_latest_ballot_is_proposed() -> None:
    three = left_behind(committing_at=0)
    # Replica 2 ends the transaction with 1, and neither has heard of the commit.
    three.end(1, ender=2, helper=1)
    assert three.outcome(1, 2) == ABORT
    # Replica 0 has accepted the commit, and hears from 1 of the later abort. Its first ballot is older than that of 2.
    assert three.promise(three.begin_to_end(1, 0), by=1) is None
    three.end(1, ender=0, helper=1)
    assert three.outcome(1, 0) == ABORT


def test_the_commit_that_a_client_left_behind_is_completed() -> None:
    three = left_behind(committing_at=1)
    three.end(1, ender=0, helper=1)
    assert three.outcome(1, 0) == written(1)


def test_what_a_client_left_behind_is_ended_after_the_lease() -> None:
    """By whichever replica is first, and as a majority has accepted it."""
    three = left_behind(committing_at=1)
    three.ask_to_commit(1, 2)
    three.talk(Prepare, Promised, Propose, Accepted, Decide)
    assert [three.outcome(1, replica) for replica in range(3)] == [written(1)] * 3


def test_who_has_promised_a_ballot_does_not_accept_the_commit_of_a_client_any_more() -> None:
    three = Replicas()
    for replica in range(3):
        assert three.grants(1, replica)
    assert three.promise(three.begin_to_end(1, 0), by=1)
    [answer] = three.tell(1, Propose(at(1), FIRST, written(1)))
    assert isinstance(answer, Rejected)


def test_two_of_four_decide_nothing() -> None:
    four = Replicas(4)
    for replica in range(4):
        assert four.grants(1, replica)
    prepare = four.begin_to_end(1, 0)
    first, second = (four.promise(prepare, by=replica) for replica in (1, 2))
    assert first is not None
    assert four.tell(0, first, 1) == []
    assert four.propose(second, by=2).decision == ABORT


def test_nobody_votes_for_a_write_of_a_transaction_that_somebody_is_ending() -> None:
    """Such a vote does no harm, for it binds nobody: but the client would go on to a commit that will be refused."""
    three = Replicas()
    assert three.grants(1, 0)
    prepare = three.begin_to_end(1, 0)
    promise = three.promise(prepare, by=1)
    assert three.write(1, 1) is None
    assert three.write(1, 0) is None
    three.accept(three.propose(promise, by=1), by=1)
    answer = three.write(1, 0)
    assert isinstance(answer, Ended)
    assert answer.decision == ABORT
