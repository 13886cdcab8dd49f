"""One transaction that its client, and every replica at its own time, try to end, while packets pass in any order.

Nothing here has a speed: a seeded scheduler chooses whether a packet passes next, and which, or a replica loses patience,
or one crashes and comes back at once. So ballots compete in every run, and what an older one says comes late in most.
"""

from __future__ import annotations

from random import Random

from quire.model.packets import Packet
from quire.protocols.node import Effects, Send
from quire.protocols.transactions.notices import Answered, Began, Failed, Traced
from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.quorum_client import QuorumClient
from quire.protocols.transactions.quorum_packets import Decide, Have, Prepare, Propose
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.requests import Begin, Finish, Put
from quire.protocols.transactions.settings import Settings
from quire.protocols.transactions.timestamps import Timestamp

STEPS = 120
LOST = {Decide: 0.85, Have: 1.0, Prepare: 0.5, Propose: 0.3}
"""How much of it is lost, where that is more than usual: who decided keeps it to itself, and what was proposed reaches few."""
RESTARTS = ("intact", "forgetful", "blank")


class Duel:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.settings = Settings()
        self.placement = Placement(random.choice((3, 3, 3, 5)))
        self.replicas = [QuorumReplica(each, self.placement, self.settings, random.random) for each in self.placement.replicas]
        self.client = QuorumClient(len(self.replicas), self.placement, self.settings, random.random)
        self.now = 0
        self.wire: list[tuple[int, int, Packet]] = []
        self.outcomes: list[tuple[int, bool]] = []
        """Who held the transaction for committed (or not), in the order in which they learnt it."""
        self._enders: set[int] = set()
        self.lost = 0
        """How many disks were lost."""
        self._perform(self.client.address, self.client.submit(0, 1, Begin()))

    @property
    def enders(self) -> int:
        """How many replicas have begun to end it."""
        return len(self._enders)

    def run(self) -> str | None:
        """Returns what is wrong, if anything."""
        for _ in range(STEPS):
            choice = self.random.random()
            if self.wire and choice < 0.85:
                self._pass_on()
            elif choice < 0.98:
                self._lose_patience(self.random.choice(self.replicas))
            else:
                self._restart(self.random.choice(self.replicas))
        return None if len({commit for _, commit in self.outcomes}) < 2 else f"they disagree: {self.outcomes}"

    def _pass_on(self) -> None:
        """A packet comes: mostly the newest, so that ballots get somewhere. It may have been lost, or come again."""
        index = -1 if self.random.random() < 0.9 else self.random.randrange(len(self.wire))
        source, to, packet = self.wire[index]
        if self.random.random() < 0.9:
            del self.wire[index]
        if self.random.random() > LOST.get(type(packet), 0.1):
            node = self.client if to == self.client.address else self.replicas[to]
            self._perform(to, node.receive(self.now, source, packet))

    def _lose_patience(self, replica: QuorumReplica) -> None:
        due = replica.due()
        if due is not None:
            self.now = max(self.now, due)
            self._perform(replica.address, replica.wake(self.now))

    def _restart(self, replica: QuorumReplica) -> None:
        """One at a time: who lost its disk is not followed by another before it has its state again."""
        if any(each.recovering for each in self.replicas):
            return
        how, state, lost = self.random.choice(RESTARTS), replica.state, None
        if how == "forgetful":
            state = state.without_read_timestamps()
        elif how == "blank":
            lost = replica.state.incarnation + 1
        again = QuorumReplica(
            replica.address, self.placement, self.settings, self.random.random, None if lost else state, lost, self.now
        )
        self.replicas[replica.address] = again
        self.lost += lost is not None

    def _perform(self, me: int, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Send(packet=packet, to=to):
                    self._enders |= {me} if isinstance(packet, Prepare) else set()
                    self.wire += [(me, each, packet) for each in to]
                case Traced(op="commit" | "abort" as op, kind="deliver"):
                    self.outcomes.append((me, op == "commit"))
                case Began(t=t):
                    self._perform(me, self.client.submit(self.now, 2, Put(t, "k", b"x")))
                case Answered(call=2):
                    self._perform(me, self.client.submit(self.now, 3, Finish(Timestamp(1, me), True)))
                case Answered(call=3) | Failed(call=3):
                    self.outcomes.append((me, isinstance(effect, Answered)))
