"""Reliable links over a network that loses, repeats and reorders.

Each ordered pair of members numbers its frames. The receiver acknowledges the number up to which it has everything; the
sender keeps frames until then and sends the oldest ones again when its timer runs out, each time after twice as long.
The receiver drops what it has and holds what came early, so that packets come out once and in order. Where the
protocol copes with repeated and reordered packets itself, frames are passed on as they come and only loss is repaired.

At most a window of frames is on the way; further ones wait with the sender. Nothing is held that lies beyond the window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from quire.simulation.network import Network

WINDOW_FRAMES = 1024
REPAIR_FRAMES = 64
BACK_OFF_MAX = 64
TIMEOUT_NS_MIN = 1_000_000

LINK_ACK = "LINK-ACK"
RETRANSMISSION = "RETRANSMISSION"

Item = TypeVar("Item")


class Outgoing(Generic[Item]):
    """The sending end of one link."""

    def __init__(self, window: int = WINDOW_FRAMES) -> None:
        self.window = window
        self.first = 0
        """The lowest number that is not acknowledged: that of frames[0]."""
        self.frames: deque[Item] = deque()
        self.sent = 0
        """How many of the frames were put on the wire."""
        self.back_off = 1

    def offer(self, item: Item) -> list[tuple[int, Item]]:
        """Take one more item; returns the frames to put on the wire now."""
        self.frames.append(item)
        return self._fill()

    def acknowledged(self, number: int) -> list[tuple[int, Item]]:
        """The other end has everything below `number`; returns the frames for which there is room now."""
        while self.first < number and self.frames:
            self.frames.popleft()
            self.first += 1
            self.sent -= 1
            self.back_off = 1
        return self._fill()

    def overdue(self) -> list[tuple[int, Item]]:
        """The timer ran out; returns the frames to send again."""
        self.back_off = min(self.back_off * 2, BACK_OFF_MAX)
        count = min(self.sent, REPAIR_FRAMES)
        return [(self.first + index, self.frames[index]) for index in range(count)]

    def _fill(self) -> list[tuple[int, Item]]:
        count = min(len(self.frames), self.window) - self.sent
        new = [(self.first + index, self.frames[index]) for index in range(self.sent, self.sent + count)]
        self.sent += len(new)
        return new


class Incoming(Generic[Item]):
    """The receiving end of one link."""

    def __init__(self, *, ordered: bool, window: int = WINDOW_FRAMES) -> None:
        self.ordered = ordered
        self.window = window
        self.next = 0
        """The lowest number that is missing; everything below it has come."""
        self.early: dict[int, Item] = {}

    def take(self, number: int, item: Item) -> list[Item]:
        """Take a frame as it comes; returns what is passed on now."""
        if number >= self.next + self.window:
            return []
        if number >= self.next and number not in self.early:
            self.early[number] = item
        ready = []
        while self.next in self.early:
            ready.append(self.early.pop(self.next))
            self.next += 1
        return ready if self.ordered else [item]


class Link(Generic[Item]):
    """Both ends of one link, and its timer."""

    def __init__(self, source: int, destination: int, *, ordered: bool) -> None:
        self.source = source
        self.destination = destination
        self.out: Outgoing[Item] = Outgoing()
        self.into: Incoming[Item] = Incoming(ordered=ordered)
        self.timing = False
        self.deadline_ns = 0


class LinkLayer(Generic[Item]):
    """All links of a group, on a network and a virtual timer.

    `at(time, act, item)` calls act(item) at that time; `pass_on(destination, item)` takes what comes out of a link.
    """

    def __init__(
        self,
        network: Network,
        at: Callable[[int, Callable[[Any], None], Any], None],
        pass_on: Callable[[int, Item], None],
        *,
        ordered: bool,
    ) -> None:
        self.counts = {LINK_ACK: 0, RETRANSMISSION: 0}
        self._network = network
        self._at = at
        self._pass_on = pass_on
        self._ordered = ordered
        # A frame and its acknowledgement take two delays; a third leaves room for those that are late.
        self._timeout_ns = max(3 * network.delays.usual_ns_max(), TIMEOUT_NS_MIN)
        self._links: dict[tuple[int, int], Link[Item]] = {}
        self._silent: set[int] = set()

    def send(self, source: int, destination: int, item: Item, now_ns: int) -> None:
        link = self._links.get((source, destination))
        if link is None:
            link = self._links[source, destination] = Link(source, destination, ordered=self._ordered)
        self._transmit(link, link.out.offer(item), now_ns)

    def silence(self, member: int) -> None:
        """The member crashed: it sends nothing more, and nobody sends it anything again."""
        self._silent.add(member)

    def on_link(self, act: object, item: Any) -> tuple[int, int] | None:
        """The source and destination of a scheduled frame; None if what is scheduled is not a frame."""
        return (item[1].source, item[1].destination) if act == self._frame_came else None

    def _dead(self, link: Link[Item]) -> bool:
        return bool(self._silent) and (link.source in self._silent or link.destination in self._silent)

    def _transmit(self, link: Link[Item], frames: list[tuple[int, Item]], now_ns: int) -> None:
        if self._dead(link):
            return
        for number, item in frames:
            for time in self._network.arrivals(link.source, link.destination, now_ns):
                self._at(time, self._frame_came, (time, link, number, item))
        if frames and not link.timing:
            link.timing = True
            link.deadline_ns = now_ns + self._timeout_ns
            self._at(link.deadline_ns, self._timer_ended, (link.deadline_ns, link))

    def _timer_ended(self, timer: tuple[int, Link[Item]]) -> None:
        now_ns, link = timer
        if not link.out.sent or self._dead(link):
            link.timing = False
            return
        if now_ns >= link.deadline_ns:
            frames = link.out.overdue()
            self.counts[RETRANSMISSION] += len(frames)
            self._transmit(link, frames, now_ns)
            link.deadline_ns = now_ns + self._timeout_ns * link.out.back_off
        self._at(link.deadline_ns, self._timer_ended, (link.deadline_ns, link))

    def _frame_came(self, frame: tuple[int, Link[Item], int, Item]) -> None:
        now_ns, link, number, item = frame
        if link.destination in self._silent:
            return
        ready = link.into.take(number, item)
        self.counts[LINK_ACK] += 1
        for time in self._network.arrivals(link.destination, link.source, now_ns):
            self._at(time, self._acknowledged, (time, link, link.into.next))
        for item in ready:
            self._pass_on(link.destination, item)

    def _acknowledged(self, acknowledgement: tuple[int, Link[Item], int]) -> None:
        now_ns, link, number = acknowledgement
        if number > link.out.first:
            # The timer is one for the link: it runs anew for the frame that is now the oldest.
            link.deadline_ns = now_ns + self._timeout_ns
        self._transmit(link, link.out.acknowledged(number), now_ns)
