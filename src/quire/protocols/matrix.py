"""Causal order for messages to any members, by a matrix clock of who sent how many to whom: one flat cluster.

Every member counts the messages that it knows of between any two members, and every message carries that matrix. A
message waits until all that its matrix counts as sent to its receiver were delivered there. Nobody relays or
coordinates anything, and a message takes one hop. The price is a header that grows with the square of the group, which
is what a hierarchy of clusters was set against.

Source: M. Raynal, A. Schiper and S. Toueg, "The causal ordering abstraction and a simple way to implement it",
Information Processing Letters 39, 1991; the rule and its encodings are in `clusters.matrix`.
Assumes: links that lose nothing; they may repeat and reorder. No member crashes. Membership is fixed.
Guarantees: integrity, agreement, causal order (and with it sender order), whomever messages are addressed to.
Departures: a multicast counts as sent to all of its members at once. The hold-back buffer has a bound.
Cost: one packet for each member addressed; N² counts in each if `dense`, what changed if `changes`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from quire.protocols.clusters.packets import Tagged
from quire.protocols.clusters.site import Site
from quire.protocols.clusters.tree import MATRIX, NO_AGENT, Cluster, Tree


class MatrixOptions(msgspec.Struct, frozen=True, kw_only=True):
    encoding: Literal["dense", "changes", "adaptive"] = "dense"
    """How the matrix is written: whole, what changed, or whichever is the smallest."""
    held: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)] = 1 << 20
    """How many messages may be held back here at once."""


class FlatMatrix(Site):
    """One member of a group that is one cluster, ordered by a matrix."""

    packets = (Tagged,)

    def __init__(self, me: int, members: int, options: MatrixOptions) -> None:
        tree = Tree((Cluster(0, 1, tuple(range(members)), NO_AGENT, MATRIX),))
        super().__init__(me, members, tree, options.encoding, options.held)
        self.options = options
