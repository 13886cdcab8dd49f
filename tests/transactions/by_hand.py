"""Replicas between which only those packets pass that a test lets through, one by one."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from quire.model.packets import Packet
from quire.protocols.node import Effects, Send
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.quorum_packets import (
    Accepted,
    Decide,
    Denied,
    Fetch,
    Granted,
    Prepare,
    Prewrite,
    Promised,
    Propose,
    Recover,
)
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.timestamps import Timestamp, Version
from quire.protocols.transactions.votes import FIRST, Decision

CLIENT = 7
KEY = "k"


def at(number: int) -> Timestamp:
    return Timestamp(number, CLIENT)


def written(number: int) -> Decision:
    """How transaction `number` ends if it commits: it has written its own number."""
    return Decision(True, {KEY: (Version(number, CLIENT, 1), b"%d" % number)})


class Replicas:
    def __init__(self, count: int = 3, remembered: int = 1, owed_max: int = 1000, **begins: object) -> None:
        self.settings = Settings(remembered=remembered, owed_max=owed_max)
        self.placement = Placement(count)
        self.nodes = [self._make(address, **begins) for address in range(count)]
        self.now = 0

    def _make(self, address: int, **begins: object) -> QuorumReplica:
        return QuorumReplica(address, self.placement, self.settings, Random(1).random, **begins)  # type: ignore[arg-type]

    def tell(self, to: int, packet: Packet, source: int = CLIENT) -> list[Packet]:
        """What it answers to the source."""
        return self._sent(self.nodes[to].receive(self.now, source, packet), source)

    @staticmethod
    def _sent(effects: Effects, to: int) -> list[Packet]:
        return [effect.packet for effect in effects if isinstance(effect, Send) and to in effect.to]

    # What a client does.

    def write(self, number: int, replica: int) -> Packet | None:
        """Transaction `number` writes at this replica; its answer."""
        answers = self.tell(replica, Prewrite(at(number), 1, KEY, Version(number, CLIENT, 1), b"%d" % number))
        return answers[0] if answers else None

    def grants(self, number: int, replica: int) -> bool:
        """Whether the replica votes for a write of the transaction."""
        answer = self.write(number, replica)
        assert answer is None or isinstance(answer, Granted | Denied)
        return isinstance(answer, Granted)

    def read(self, number: int, replica: int) -> Packet | None:
        answers = self.tell(replica, Fetch(at(number), 1, KEY))
        return answers[0] if answers else None

    def ask_to_commit(self, number: int, replica: int) -> None:
        self.tell(replica, Propose(at(number), FIRST, written(number)))

    def decide(self, number: int, replicas: Iterable[int] | None = None) -> None:
        for replica in range(len(self.nodes)) if replicas is None else replicas:
            self.tell(replica, Decide(at(number), written(number)))

    # What replicas do.

    def begin_to_end(self, number: int, replica: int) -> Prepare:
        """The client has been silent for too long: what this replica sends to the others. Whatever else it says is lost."""
        other = (replica + 1) % len(self.nodes)
        prepares: list[Prepare] = []
        while not prepares:
            due = self.nodes[replica].due()
            assert due is not None
            self.now = max(self.now, due)
            sent = self._sent(self.nodes[replica].wake(self.now), other)
            prepares = [packet for packet in sent if isinstance(packet, Prepare)]
        [prepare] = prepares
        assert prepare.t == at(number)
        return prepare

    def promise(self, prepare: Prepare, by: int) -> Promised | None:
        """What a replica answers to the one that is ending a transaction, on its way."""
        [answer] = self.tell(by, prepare, prepare.ballot.replica)
        return answer if isinstance(answer, Promised) else None

    def propose(self, promise: Promised | None, by: int) -> Propose:
        """The promise comes to the one that is ending a transaction, which now has a majority: what it proposes."""
        assert promise is not None
        ender = promise.ballot.replica
        other = (ender + 1) % len(self.nodes)
        [proposal] = self._sent(self.nodes[ender].receive(self.now, by, promise), other)
        assert isinstance(proposal, Propose)
        return proposal

    def accept(self, proposal: Propose, by: int) -> None:
        """A proposal comes to a replica, and what that says to it, comes back."""
        ender = proposal.ballot.replica
        [answer] = self.tell(by, proposal, ender)
        assert isinstance(answer, Accepted)
        self.tell(ender, answer, by)

    def end(self, number: int, ender: int, helper: int) -> None:
        """One replica ends a transaction with the help of another; nobody else hears of it."""
        promise = self.promise(self.begin_to_end(number, ender), helper)
        self.accept(self.propose(promise, helper), helper)

    def outcome(self, number: int, replica: int) -> Decision | None:
        """How the transaction ended, as far as this replica knows."""
        return self.nodes[replica].state.decided.get(at(number))

    def restart_without_read_timestamps(self, replica: int) -> None:
        self.nodes[replica] = self._make(replica, state=self.nodes[replica].state.without_read_timestamps(), now=self.now)

    def lose_disk(self, replica: int, asks: Iterable[int], *, enough: bool = True) -> None:
        """The replica comes back with nothing, and takes what these others know, if they are enough."""
        incarnation = self.nodes[replica].state.incarnation + 1
        self.nodes[replica] = self._make(replica, lost=incarnation, now=self.now)
        for other in asks:
            [snapshot] = self.tell(other, Recover(incarnation), replica)
            self.tell(replica, snapshot, other)
        assert self.nodes[replica].recovering is not enough

    def talk(self, *kinds: type[Packet], rounds: int = 6) -> None:
        """Let time pass; what is not of these kinds is lost."""
        for _ in range(rounds):
            self.now += 1_000_000_000
            waiting = [(node.address, effect) for node in self.nodes for effect in node.wake(self.now)]
            while waiting:
                source, effect = waiting.pop(0)
                if isinstance(effect, Send) and isinstance(effect.packet, kinds):
                    for to in effect.to:
                        waiting += [(to, each) for each in self.nodes[to].receive(self.now, source, effect.packet)]

    def horizons(self) -> list[int]:
        return [node.state.horizon.tid for node in self.nodes]
