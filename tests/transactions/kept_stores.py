"""Random stores whose replicas have disks: what is not synced is lost in a crash, and any number of them crash at once.

Replicas begin with nothing and find out together that nobody has anything. A disk may be lost, one at a time: while all
others have theirs.
"""

from __future__ import annotations

from quire.journal.journal import Recovered
from quire.protocols.node import Node
from quire.protocols.transactions.quorum_replica import QuorumReplica
from quire.protocols.transactions.settings import MILLISECOND
from quire.simulation.kept import KeptHost
from quire.transactions.journal import checkpoint, entry, read_state
from tests.transactions.stores import Plan, Store

CHECKPOINT_NS = 40 * MILLISECOND
SYNC_NS_MAX = 6 * MILLISECOND


KEPT = ("stage", "incarnation", "known", "gone", "promised", "accepted", "ballots", "decided", "prewritten", "cap", "closed")
"""What of a state must be on a disk as it is in memory; cells are compared by what they hold."""


class KeptStore(Store):
    def __init__(self, plan: Plan, seed: int) -> None:
        self.lost_disks = self.read_disks = self.all_at_once = 0
        super().__init__(plan, seed)
        for host in self.kept:
            self.world.at(CHECKPOINT_NS, self.make_checkpoint, host)

    @property
    def kept(self) -> list[KeptHost]:
        return [host for host in self.world.hosts if isinstance(host, KeptHost)]

    def first_life(self, address: int) -> QuorumReplica:
        return self.make(address, None)

    def make(self, address: int, found: Recovered | None) -> QuorumReplica:
        """A replica with what is on its disk, or one that has nothing."""
        plan = self.plan
        state = None if found is None else read_state(found, lambda key: address in plan.placement.of(key))
        self.read_disks += state is not None
        lost = None
        if state is None:
            lost = self.incarnations[address] = self.incarnations.get(address, 0) + 1
        draw = self.random.random
        return QuorumReplica(address, plan.placement, plan.settings, draw, state, lost, self.now, kept=True)

    @property
    def now(self) -> int:
        return self.world.now

    def settle(self, node: Node) -> None:
        if isinstance(node, QuorumReplica):
            sync_ns = lambda: 1 + int(self.random.random() * SYNC_NS_MAX)  # noqa: E731
            self.world.settle(KeptHost(self.world, node, self.hear, entry, self.random, sync_ns))
        else:
            super().settle(node)

    def make_checkpoint(self, host: KeptHost) -> None:
        node = host.node
        if isinstance(node, QuorumReplica) and not node.recovering and not host.gone:
            head, chunks = checkpoint(node.state)
            host.checkpoint(head, chunks)
        self.world.at(self.now + CHECKPOINT_NS, self.make_checkpoint, host)

    def crash_replica(self, crash: tuple[int, int, str]) -> None:
        address, down, kind = crash
        if kind == "all":
            self.all_at_once += 1
            for host in self.kept:
                self._crash(host.node.address, int(down * self.random.random()), "intact")
        elif kind == "intact" or not any(self._has_nothing(host) for host in self.kept):
            self._crash(address, down, kind)

    def _has_nothing(self, host: KeptHost) -> bool:
        node = self.replica(host.node.address)
        # What it has recovered, but not made durable yet, it may lose again.
        return node.recovering or node.address in self._blank or read_state(host.durable(), node.holds) is None

    @property
    def _blank(self) -> set[int]:
        """The replicas that are away, and come back with nothing."""
        return {address for address, kind in self._away.items() if kind != "intact"}

    def _crash(self, address: int, down: int, kind: str) -> None:
        if not self.world.hosts[address].gone:
            self.world.crash(address)
            self._away[address] = kind
            self.durable[address] = self.replica(address).state
            self.world.at(self.now + down, self.restart_replica, (address, kind))

    def unlike_its_disk(self) -> str | None:
        """A replica whose disk, on which everything is that was to be written, says something else than it knows."""
        for host in self.kept:
            if host.is_quiet() and not host.gone and not self._recovering(host.node):
                node = self.replica(host.node.address)
                found = read_state(host.on_disk(), node.holds)
                known = node.state.without_read_timestamps()
                if found is None or any(getattr(found, table) != getattr(known, table) for table in KEPT):
                    return f"the disk of replica {node.address} says {found} instead of {known}"
        return None

    def replica(self, address: int) -> QuorumReplica:
        node = self.world.hosts[address].node
        assert isinstance(node, QuorumReplica)
        return node

    def restart_replica(self, how: tuple[int, str]) -> None:
        address, kind = how
        del self._away[address]
        host = self.world.hosts[address]
        assert isinstance(host, KeptHost)
        if kind == "intact":
            host.come_back(lambda found: self.make(address, found))
        else:
            self.lost_disks += 1
            host.come_back_without_disk(self.make(address, None))
