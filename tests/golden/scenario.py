"""Scenarios in text: a command, a line of dashes, what happened.

    generate MEMBER PAYLOAD…      the member multicasts these operations as one batch
    receive SOURCE MEMBER         the member takes the head of the link from SOURCE
    ----
    sent …        packets, as G(sid,ts), G(sid,ts..last) or A(sid,ts)
    executed …    operations, in order
    LCV [..]  MRMT n  PMQ …

The first lines of a file say what it redraws (`# …`) and what runs (`group members=3 acks=basic`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quire.model.messages import make_run
from quire.model.packets import Packet
from quire.protocols.contract import Deliver, Effects
from quire.protocols.registry import create
from quire.protocols.single_phase import Acknowledgement, Operations, SinglePhase


@dataclass
class Step:
    """The state after one input, in the words of the specification's vectors."""

    site: int
    sent: list[str]
    executed: list[str]
    lcv: list[int]
    mrmt: int
    pmq: list[str]

    def lines(self) -> list[str]:
        return [
            f"sent {' '.join(self.sent) or '-'}",
            f"executed {' '.join(self.executed) or '-'}",
            f"LCV {self.lcv}  MRMT {self.mrmt}  PMQ {' '.join(self.pmq) or '-'}",
        ]


class Scenario:
    """A group of single-phase members and the FIFO links between them."""

    def __init__(self, members: int, options: Mapping[str, object]) -> None:
        self.members = [self._member(me, members, options) for me in range(members)]
        self.links: dict[tuple[int, int], deque[Packet]] = defaultdict(deque)
        self.next = [0] * members
        self.executed: list[list[str]] = [[] for _ in range(members)]

    @staticmethod
    def _member(me: int, members: int, options: Mapping[str, object]) -> SinglePhase:
        protocol = create("single-phase", me, members, options)
        assert isinstance(protocol, SinglePhase)
        return protocol

    def generate(self, member: int, payloads: list[str]) -> Step:
        run = make_run(member, self.next[member], [payload.encode() for payload in payloads])
        self.next[member] += run.count
        return self._perform(member, self.members[member].submit(run))

    def receive(self, source: int, member: int) -> Step:
        packet = self.links[source, member].popleft()
        return self._perform(member, self.members[member].receive(source, packet))

    def _perform(self, member: int, effects: Effects) -> Step:
        sent, executed = [], []
        for effect in effects:
            if isinstance(effect, Deliver):
                assert effect.position is not None
                start = effect.position[0]
                executed += [f"G({effect.run.origin},{start + step})" for step in range(effect.run.count)]
                continue
            sent.append(describe(member, effect.packet))
            for other in effect.to if effect.to is not None else range(len(self.members)):
                if other != member:
                    self.links[member, other].append(effect.packet)
        self.executed[member] += executed
        protocol = self.members[member]
        pending = [f"G({origin},{time})" for time, origin in protocol.pending()]
        return Step(member, sent, executed, list(protocol.clocks), protocol.announced, pending)


def describe(member: int, packet: Packet) -> str:
    if isinstance(packet, Operations):
        last = packet.time + packet.run.count - 1
        return f"G({member},{packet.time})" if last == packet.time else f"G({member},{packet.time}..{last})"
    assert isinstance(packet, Acknowledgement)
    return f"A({member},{packet.clock})"


def play(text: str) -> tuple[str, list[Step]]:
    """The same scenario with what really happened written under each command, and each step."""
    written: list[str] = []
    steps: list[Step] = []
    scenario: Scenario | None = None
    for line in _commands(text):
        written.append(line)
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "group":
            settings = dict(word.split("=") for word in words[1:])
            scenario = Scenario(int(settings.pop("members")), settings)
            continue
        assert scenario is not None, "a scenario opens with its group"
        if words[0] == "generate":
            step = scenario.generate(int(words[1]), words[2:])
        else:
            assert words[0] == "receive", f"no such command: {line}"
            step = scenario.receive(int(words[1]), int(words[2]))
        steps.append(step)
        written += ["----", *step.lines()]
    return "\n".join(written) + "\n", steps


def _commands(text: str) -> Iterator[str]:
    outcome = False
    for line in text.splitlines():
        if line == "----":
            outcome = True
        elif not line:
            outcome = False
            yield line
        elif not outcome:
            yield line
