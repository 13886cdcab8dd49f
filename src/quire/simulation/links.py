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
        return [(self.first + place, self.frames[place]) for place in range(count)]

    def _fill(self) -> list[tuple[int, Item]]:
        count = min(len(self.frames), self.window) - self.sent
        new = [(self.first + place, self.frames[place]) for place in range(self.sent, self.sent + count)]
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


class LinkLayer(Generic[Item]):
    """All links of a group, on a network and a virtual timer.

    `at(time, act, item)` calls act(item) at that time; `pass_on(destination, item)` takes what comes out of a link.
    """

    def __init__(
        self,
        members: int,
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
        # A frame and its acknowledgement take two delays; a third leaves room for those that are late.
        self._timeout_ns = max(3 * network.delays.usual_ns_max(), 1)
        self._out: list[list[Outgoing[Item]]] = [[Outgoing() for _ in range(members)] for _ in range(members)]
        self._in: list[list[Incoming[Item]]] = [[Incoming(ordered=ordered) for _ in range(members)] for _ in range(members)]
        self._deadline = [[0] * members for _ in range(members)]
        self._timing = [[False] * members for _ in range(members)]
        self._silent = [False] * members

    def send(self, source: int, destination: int, item: Item, now_ns: int) -> None:
        self._transmit(source, destination, self._out[source][destination].offer(item), now_ns)

    def silence(self, member: int) -> None:
        """The member crashed: it sends nothing more, and nobody sends it anything again."""
        self._silent[member] = True

    def on_link(self, act: object, item: Any) -> tuple[int, int] | None:
        """The link on which a scheduled frame travels; None if what is scheduled is not a frame."""
        return (item[1], item[2]) if act == self._frame_came else None

    def _transmit(self, source: int, destination: int, frames: list[tuple[int, Item]], now_ns: int) -> None:
        if self._silent[source] or self._silent[destination]:
            return
        for number, item in frames:
            for time in self._network.arrivals(source, destination, now_ns):
                self._at(time, self._frame_came, (time, source, destination, number, item))
        if frames and not self._timing[source][destination]:
            self._timing[source][destination] = True
            self._deadline[source][destination] = now_ns + self._timeout_ns
            self._set_timer(source, destination)

    def _set_timer(self, source: int, destination: int) -> None:
        time = self._deadline[source][destination]
        self._at(time, self._timer_ended, (time, source, destination))

    def _timer_ended(self, timer: tuple[int, int, int]) -> None:
        now_ns, source, destination = timer
        link = self._out[source][destination]
        if not link.sent or self._silent[source] or self._silent[destination]:
            self._timing[source][destination] = False
        elif now_ns < self._deadline[source][destination]:
            self._set_timer(source, destination)
        else:
            frames = link.overdue()
            self.counts[RETRANSMISSION] += len(frames)
            self._transmit(source, destination, frames, now_ns)
            self._deadline[source][destination] = now_ns + self._timeout_ns * link.back_off
            self._set_timer(source, destination)

    def _frame_came(self, frame: tuple[int, int, int, int, Item]) -> None:
        now_ns, source, destination, number, item = frame
        if self._silent[destination]:
            return
        link = self._in[source][destination]
        ready = link.take(number, item)
        self.counts[LINK_ACK] += 1
        if not self._silent[source]:
            for time in self._network.arrivals(destination, source, now_ns):
                self._at(time, self._acknowledged, (time, source, destination, link.next))
        for item in ready:
            self._pass_on(destination, item)

    def _acknowledged(self, acknowledgement: tuple[int, int, int, int]) -> None:
        now_ns, source, destination, number = acknowledgement
        link = self._out[source][destination]
        progress = number > link.first
        self._transmit(source, destination, link.acknowledged(number), now_ns)
        if progress:
            # The timer is one for the link: it runs anew for the frame that is now the oldest.
            self._deadline[source][destination] = now_ns + self._timeout_ns
