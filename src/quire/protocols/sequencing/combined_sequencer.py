"""A sequencer that also keeps the directory, so that a small service needs no extra process for it."""

from __future__ import annotations

from collections.abc import Sequence

from quire.model.packets import Packet
from quire.protocols.node import Effects, Node
from quire.protocols.sequencing.directory import Directory
from quire.protocols.sequencing.options import SequencingOptions
from quire.protocols.sequencing.sequencer import Sequencer

_FOR_DIRECTORY = frozenset(Directory.packets)


class CombinedSequencer(Node):
    """Sequencer and directory at one address; no kind of packet is for both."""

    packets = (*Sequencer.packets, *Directory.packets)

    def __init__(self, address: int, sequencers: Sequence[int], options: SequencingOptions) -> None:
        super().__init__(address)
        self.sequencer = Sequencer(address, sequencers, address, options)
        self.directory = Directory(address, sequencers, options)

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        node = self.directory if type(packet) in _FOR_DIRECTORY else self.sequencer
        return node.receive(now, source, packet)

    def wake(self, now: int) -> Effects:
        due = [node for node in (self.sequencer, self.directory) if (at := node.due()) is not None and at <= now]
        return [effect for node in due for effect in node.wake(now)]

    def due(self) -> int | None:
        return min((at for node in (self.sequencer, self.directory) if (at := node.due()) is not None), default=None)

    def idle(self) -> bool:
        return self.sequencer.idle() and self.directory.idle()

    def suspect(self, client: int) -> Effects:
        return self.sequencer.suspect(client)

    def holding_up(self) -> dict[int, tuple[str, int]]:
        return self.sequencer.holding_up()
