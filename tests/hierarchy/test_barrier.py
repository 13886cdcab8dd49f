"""A site that changes its place has its whole past flushed first: what it delivered may still be on its way to others."""

from __future__ import annotations

import pytest

from quire.model.errors import WindowFull
from quire.model.messages import MessageId
from quire.model.packets import Packet
from quire.protocols.clusters.tree import Tree
from quire.protocols.hierarchy.description import Description, Layer, tree_of
from quire.protocols.hierarchy.membership import DynamicSite
from tests.hierarchy.trees import Net, factory

MEMBERS = 6
AGENT, MOVER, SPEAKER, LISTENER, OTHER_AGENT = 0, 1, 2, 3, 4


def tree(inside: str) -> Tree:
    """Sites 0 to 3 are one cluster, 4 and 5 the other."""
    return tree_of(Description((Layer(((0, 1, 2, 3), (4, 5)), (AGENT, OTHER_AGENT)), Layer(((AGENT, OTHER_AGENT),)))), inside)


class Slow(Net):
    """A net in which one packet is held up."""

    def __init__(self, inside: str) -> None:
        super().__init__(factory(tree(inside)), MEMBERS)
        for me in range(MEMBERS):
            self.site(me)
        self._held: tuple[int, int, Packet] | None = None

    def of(self, me: int) -> DynamicSite:
        site = self.site(me)
        assert isinstance(site, DynamicSite)
        return site

    def hold_up(self, source: int, to: int) -> None:
        """The packet from one site to another that is under way now takes long."""
        [self._held] = [parcel for parcel in self.queue if parcel[:2] == (source, to)]
        self.queue.remove(self._held)

    def let_go(self) -> None:
        assert self._held is not None
        self.queue.append(self._held)

    def try_to_send(self, source: int, to: int) -> MessageId | None:
        try:
            return self.send(source, to)
        except WindowFull:
            self.sent[source] -= 1
            return None


@pytest.mark.parametrize("inside", ["matrix", "coordinator"])
def test_a_site_that_moves_waits_until_everybody_has_what_it_has_delivered(inside: str) -> None:
    net = Slow(inside)
    # One message to the site that will move and to another one, whose copy is slow. Under a coordinator it comes from there.
    cause = net.send(SPEAKER, MOVER, LISTENER)
    while not any(to == LISTENER for _, to, _ in net.queue):
        net.step()
    net.hold_up(SPEAKER if inside == "matrix" else AGENT, LISTENER)
    net.perform(MOVER, net.of(MOVER).move(OTHER_AGENT))
    net.drain()
    assert net.logs[MOVER] == [cause]
    # On its new way, by agents who know nothing of the message, an answer would be there before it.
    early = net.try_to_send(MOVER, LISTENER)
    net.drain()
    net.let_go()
    net.drain()
    late = net.try_to_send(MOVER, LISTENER)
    net.drain()
    assert net.logs[LISTENER][:2] == [cause, early or late]
    assert early is None
    assert not net.of(MOVER).changing
