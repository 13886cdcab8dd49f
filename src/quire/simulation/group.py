"""A simulated group for interactive use: submit messages, advance virtual time, inspect deliveries.

>>> group = Group("single-phase", members=3)
>>> first, second = group.submit(0, b"a"), group.submit(2, b"b")
>>> group.settle()
>>> [message.payload for message in group.delivered(1)]
[b'a', b'b']
>>> first.latency_ms, second.latency_ms
(0.0, 20.0)

Virtual time passes only in `execute`, `advance` and `settle`; everything else happens immediately.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from quire.model.errors import BadInput
from quire.model.messages import Message, MessageId, pack
from quire.protocols import registry
from quire.protocols.contract import Deliver, Effects, Protocol
from quire.simulation.config import NetworkConfig, SimulationConfig, check
from quire.simulation.delays import NANOSECONDS_PER_MS, to_ns
from quire.simulation.engine import Engine
from quire.simulation.runs import make_network

MakeProtocol = Callable[[int, int], Protocol]
"""Makes the protocol of a member from its number and the size of the group."""


class Submission:
    """A submitted message. The fields are set when it is delivered to its own sender."""

    def __init__(self, origin: int, seq: int, submitted_ns: int) -> None:
        self.origin = origin
        self.seq = seq
        self.message: Message | None = None
        self.latency_ms: float | None = None
        self._submitted_ns = submitted_ns

    @property
    def delivered(self) -> bool:
        return self.message is not None

    @property
    def order_key(self) -> tuple[int, ...] | None:
        return self.message.order_key if self.message is not None else None

    def settle(self, message: Message, now_ns: int) -> None:
        self.message = message
        self.latency_ms = (now_ns - self._submitted_ns) / NANOSECONDS_PER_MS


class Group:
    def __init__(
        self,
        protocol: str | MakeProtocol = "single-phase",
        members: int = 3,
        options: Mapping[str, object] | None = None,
        delay: str = "constant:10",
        seed: int = 0,
        *,
        reorder: bool = False,
        loss: float = 0.0,
        duplicate: float = 0.0,
        links: str = "auto",
    ) -> None:
        """`protocol` is a name in the registry, with its `options`, or a function that makes each member's protocol.

        The network is described as for `simulate`. Raises BadInput if there is no such group.
        """
        network = NetworkConfig(delay=delay, reorder=reorder, loss=loss, duplicate=duplicate, links=links)
        config = SimulationConfig(members=members, seed=seed, network=network)
        check(config)
        if isinstance(protocol, str):
            given = registry.read_options(protocol, options or {})
            protocols = [registry.create(protocol, me, members, given) for me in range(members)]
        else:
            protocols = [protocol(me, members) for me in range(members)]
        self.members = members
        self._engine = Engine(protocols, make_network(config), raw=links == "raw")
        self._engine.observe = self._observe
        self._engine.between = self._forget
        self._delivered: list[list[Message]] = [[] for _ in range(members)]
        self._open: dict[tuple[int, int], Submission] = {}
        self._awaited: Submission | None = None

    @property
    def now_ms(self) -> float:
        return self._engine.now / NANOSECONDS_PER_MS

    def submit(self, member: int, payload: bytes) -> Submission:
        """Multicast a message from this member without waiting; any number may be outstanding."""
        self._check(member)
        submission = Submission(member, self._engine.sites[member].next_number, self._engine.now)
        self._open[member, submission.seq] = submission
        self._engine.submit(member, 1, pack([payload]))
        return submission

    def send(self, member: int, payload: bytes, to: Sequence[int]) -> MessageId:
        """Send a message to some members alone; raises BadInput where the protocol cannot, or one of them is unknown."""
        self._check(member)
        run = self._engine.submit(member, 1, pack([payload]), tuple(to))
        return MessageId(run.origin, run.first)

    def change(self, member: int, begin: Callable[[Any], Effects]) -> None:
        """Have a member's protocol begin an operation specific to it, as in `lambda site: site.join(2)`."""
        self._check(member)
        self._engine.act(member, begin)

    def execute(self, member: int, payload: bytes) -> Message:
        """Multicast a message and let time pass until this member has delivered it.

        Raises BadInput if that cannot happen any more, because a member for which it waits is paused.
        """
        submission = self.submit(member, payload)
        if submission.message is None:
            self._awaited = submission
            self._run()
            self._awaited = None
        if submission.message is None:
            raise BadInput(
                f"message {member}:{submission.seq} cannot be delivered: a member for which it waits does not answer"
            )
        return submission.message

    def advance(self, milliseconds: float) -> None:
        """Let so much virtual time pass."""
        self._engine.at(self._engine.now + to_ns(milliseconds, "the time to advance"), self._stop, None)
        self._run()

    def settle(self) -> None:
        """Let time pass until nothing is left to happen."""
        self._run()

    def delivered(self, member: int) -> list[Message]:
        """What this member has delivered, in its order."""
        self._check(member)
        return list(self._delivered[member])

    def pause(self, member: int) -> None:
        """The member takes no input until it resumes; what comes waits for it."""
        self._check(member)
        self._engine.pause(member)

    def resume(self, member: int) -> None:
        self._check(member)
        self._engine.resume(member)

    def _check(self, member: int) -> None:
        if not 0 <= member < self.members:
            raise BadInput(f"there is no member {member}: a group of {self.members} has members 0 to {self.members - 1}")

    def _run(self) -> None:
        self._engine.stopped = False
        self._engine.run()

    def _stop(self, _: None) -> None:
        self._engine.stopped = True

    def _forget(self) -> None:
        """Discard the event logs: this group keeps messages, not a trace."""
        for site in self._engine.sites:
            site.log.take()
        del self._engine.origin_waits[:], self._engine.remote_waits[:]

    def _observe(self, member: int, effect: Deliver) -> None:
        for message in self._engine.sites[member].protocol.messages(effect):
            self._delivered[member].append(message)
            if message.origin == member and (submission := self._open.pop((member, message.seq), None)) is not None:
                submission.settle(message, self._engine.now)
                if submission is self._awaited:
                    self._engine.stopped = True
