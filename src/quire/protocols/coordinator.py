"""Total and causal order for messages to any members, through a central coordinator: one flat cluster.

Every member sends its messages up to member 0, the coordinator, which takes one message after the other and sends each down to
its destinations. All members see messages in the coordinator's order, which is causal and also total. A message takes two hops
and a small header. The price is that every message passes through one member, which is what a hierarchy of clusters was
proposed to avoid.

Source: L.-H. Yen, K.-H. Chi and T.-L. Huang, "A Scalable Scheme for Causal Message Ordering", section III.C (the
centralized approach); the rule is in `clusters.coordinator`.
Assumes: links that lose nothing; they may repeat and reorder. No member crashes. Membership is fixed.
Guarantees: integrity, agreement, causal order, and one total order of all messages, whomever they are addressed to.
Departures: packets on a link are numbered. A multicast goes up once and is taken as one. A member has at most `held` of
its own messages on their way to itself, and holds back as many that came early.
Cost: one packet up, and one down for each member addressed, less the coordinator's own; two numbers in each.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from quire.model.orders import RELIABLE, Guarantee
from quire.protocols.clusters.matrix import DENSE
from quire.protocols.clusters.packets import Down, Up
from quire.protocols.clusters.site import Site
from quire.protocols.clusters.tree import COORDINATOR, NO_AGENT, Cluster, Tree


class CoordinatorOptions(msgspec.Struct, frozen=True, kw_only=True):
    held: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)] = 1 << 20
    """How many messages may be held back here at once, and how many of its own a member may have under way to itself."""


class FlatCoordinator(Site):
    """One member of a group that is one cluster, ordered by its member 0."""

    promises = RELIABLE | {Guarantee.CAUSAL, Guarantee.FIFO, Guarantee.TOTAL, Guarantee.ACYCLIC}
    packets = (Up, Down)
    has_keys = True

    def __init__(self, me: int, members: int, options: CoordinatorOptions) -> None:
        tree = Tree((Cluster(0, 1, tuple(range(members)), NO_AGENT, COORDINATOR),))
        super().__init__(me, members, tree, DENSE, options.held)
        self.options = options
