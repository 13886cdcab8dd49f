"""A client's knowledge of where groups are, and its requests to the directory about them."""

from __future__ import annotations

from quire.protocols.node import NOTHING, Effects, Send
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.errors import GroupLost, NoSuchGroup, TooManyGroups
from quire.protocols.sequencing.notices import Failed, Found


class Locations:
    def __init__(self, directory: int) -> None:
        self.known: dict[str, int] = {}
        """The sequencer to ask about each group."""
        self._directory = directory
        self._asked: dict[str, wire.Create | wire.Lookup] = {}
        """Groups about which the directory was asked, and how."""

    def ask(self, question: wire.Create | wire.Lookup) -> Effects:
        self._asked[question.group] = question
        return (Send(question, (self._directory,)),)

    def ask_again(self) -> list[Send]:
        return [Send(question, (self._directory,)) for question in self._asked.values()]

    def located(self, packet: wire.Located) -> Effects:
        group, location, question = packet.group, packet.sequencer, self._asked.get(packet.group)
        if question is None or (isinstance(question, wire.Create) and location == -1):
            return NOTHING
        del self._asked[group]
        if location < 0:
            why = {wire.NO_ROOM: TooManyGroups, wire.LOST: GroupLost}.get(location, NoSuchGroup)
            return (Failed(group, why(group)),)
        self.known[group] = location
        return (Found(group),)

    def moved(self, packet: wire.NewLocation) -> Effects:
        if packet.group not in self.known:
            return NOTHING
        if packet.sequencer >= 0:
            self.known[packet.group] = packet.sequencer
            return NOTHING
        return self.ask(wire.Lookup(packet.group)) if packet.group not in self._asked else NOTHING

    def idle(self) -> bool:
        return not self._asked
