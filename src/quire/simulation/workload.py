"""The workload of a simulated group: when members submit messages, and to whom.

Even spacing staggers the senders over one interval, so that they do not all send at the same instant; Poisson spacing draws
each gap from the seed. In a blocking workload, a sender submits when its time has come and its previous submission was
delivered to itself, whichever is later; it does not wait for a submission that is not addressed to itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from quire.model.messages import Body
from quire.simulation.config import SimulationConfig
from quire.simulation.delays import to_ns
from quire.simulation.engine import Engine
from quire.simulation.randomness import exponential_ns, stream

_PATTERN = bytes(range(256))
_SET_MAX = 8
"""How many members a multicast to some of them addresses at most."""


def payload(size: int) -> bytes:
    """The content of every simulated message of this size."""
    return (_PATTERN * (size // len(_PATTERN) + 1))[:size]


def due_times(config: SimulationConfig, index: int, random: Random) -> Iterator[int]:
    """When the sender with this index among the senders is to make its submissions, in order and without end."""
    workload = config.workload
    interval_ns = to_ns(workload.interval_ms, "the interval")
    gap_ns = interval_ns * workload.burst
    poisson = workload.spacing == "poisson"
    time = exponential_ns(gap_ns, random.random) if poisson else index * interval_ns // len(config.senders())
    while True:
        for _ in range(workload.burst):
            yield time
        time += exponential_ns(gap_ns, random.random) if poisson else gap_ns


class Destinations:
    """To whom one sender's submissions go: everybody, a few, or one, which may be the sender itself."""

    def __init__(self, config: SimulationConfig, sender: int) -> None:
        self._uniform = stream(config.seed, f"destinations/{sender}").random
        self._broadcast = config.workload.broadcast
        self._multicast = config.workload.multicast

    def draw(self, audience: tuple[int, ...]) -> tuple[int, ...] | None:
        """The destinations of the next submission among those who can be reached; None is everybody."""
        assert self._broadcast is not None
        assert self._multicast is not None
        share = self._uniform()
        if share < self._broadcast:
            return None
        several = share < self._broadcast + self._multicast
        count = 2 + int(self._uniform() * (_SET_MAX - 1)) if several else 1
        chosen: dict[int, None] = {}
        while len(chosen) < min(count, len(audience)):
            chosen[audience[int(self._uniform() * len(audience))]] = None
        return tuple(chosen)


class Senders:
    """Feeds the engine with the submissions of a workload."""

    def __init__(self, config: SimulationConfig, engine: Engine) -> None:
        self._engine = engine
        self._batch = config.workload.batch
        self._size = config.workload.size
        self._payload = payload(self._size)
        self._bodies: dict[int, Body] = {}
        self._blocking = config.workload.mode == "blocking"
        self._left = dict.fromkeys(config.senders(), config.workload.messages)
        self._outstanding = dict.fromkeys(config.senders(), 0)
        self._to = {sender: Destinations(config, sender) for sender in config.senders() if config.workload.broadcast != 1}
        self._due = {
            sender: due_times(config, index, stream(config.seed, f"workload/{sender}"))
            for index, sender in enumerate(config.senders())
        }

    def start(self) -> None:
        """Schedule everybody's first submission."""
        if self._blocking:
            for sender in self._due:
                self._engine.watch(sender, self._delivered)
        for sender, times in self._due.items():
            self._engine.at(next(times), self._submit, sender)

    def unsent(self, sender: int) -> int:
        """How many messages this sender has not submitted."""
        return self._left.get(sender, 0)

    def _submit(self, sender: int) -> None:
        count = min(self._batch, self._left[sender])
        if not count:
            return
        self._left[sender] -= count
        to = self._to[sender].draw(self._engine.sites[sender].protocol.audience()) if self._to else None
        comes_back = to is None or sender in to
        if self._blocking and comes_back:
            self._outstanding[sender] += count
        body = self._bodies.get(count)
        if body is None:
            body = self._bodies[count] = Body(self._payload * count, self._size)
        self._engine.submit(sender, count, body, to)
        if not (self._blocking and comes_back):
            self._schedule_next(sender)

    def _schedule_next(self, sender: int) -> None:
        if self._left[sender]:
            self._engine.at(max(next(self._due[sender]), self._engine.now), self._submit, sender)

    def _delivered(self, sender: int, count: int) -> None:
        """Some of a blocking sender's own messages were delivered to it."""
        self._outstanding[sender] -= count
        if not self._outstanding[sender]:
            self._schedule_next(sender)
