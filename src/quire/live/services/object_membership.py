"""What the node and the connections of an object host do when the hosts agree on who is there.

What is said in the views comes over other links, which do not carry the logical time of the trace, so that comes with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quire.live.services.nodes import Host
from quire.protocols.objects.departures import Report
from quire.protocols.objects.node import ObjectNode
from quire.protocols.objects.returns import Said


class ObjectMembership:
    def __init__(self, host: Host, node: ObjectNode) -> None:
        self._host = host
        self._node = node

    @property
    def incarnation(self) -> int:
        return self._host.incarnation

    def incarnations(self) -> Mapping[int, int]:
        return self._host.incarnations()

    def logical_time(self) -> int:
        return self._host.clock

    def fence(self, hosts: Sequence[int]) -> Report:
        return self._node.fence(hosts)

    def go_on_without(self, agreed: Report, incarnations: Mapping[int, int], lamport: int) -> None:
        self._host.heard(lamport)
        self._host.act(self._node.install(self._host.now(), agreed))
        for member in agreed:
            self._host.give_up(member, incarnations[member], "the members that are left go on without it")

    def begin_life(self, life: int, others: Mapping[int, int]) -> None:
        self._node.begin_life(life, others)

    def admit(self, hosts: Mapping[int, int]) -> None:
        self._node.admit(hosts)

    def stands(self) -> Said:
        return self._node.stands()

    def admitted(self, said: Mapping[int, Said], lamport: int) -> None:
        self._host.heard(lamport)
        self._host.act(self._node.admitted(self._host.now(), said))

    def caught_up(self, host: int, lamport: int) -> None:
        self._host.heard(lamport)
        self._host.act(self._node.caught_up(self._host.now(), host))
