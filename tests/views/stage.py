"""A stage for scenarios: a group at rest, of which a test says step by step what happens to it.

Packets are named by their kind, not by their number on a link: `pass_on("m0", "m1", Prepare)` has everything arrive that
was sent from the one to the other up to the first packet of that kind.
"""

from __future__ import annotations

import random
from collections.abc import Collection

from quire.simulation.membership.settling import Settling
from quire.simulation.membership.world import World
from quire.views.core import GroupSettings
from quire.views.member import Member
from quire.views.packets import Accept, GroupPacket, Join, Prepare, Promise, Vote
from quire.views.view import Participant


class Stage(World):
    def __init__(
        self,
        founders: int,
        *,
        joiners: int = 0,
        weights: Collection[int] = (),
        clusters: Collection[str] = (),
        protocol: str = "single-phase",
        seed: int = 0,
        **settings: object,
    ) -> None:
        names = [f"m{number}" for number in range(founders)] + [f"j{number}" for number in range(joiners)]
        given = zip(names, weights or [1] * len(names), clusters or [""] * len(names), strict=True)
        people = [Participant(name, 1, weight, cluster) for name, weight, cluster in given]
        chosen: dict[str, object] = {
            "protocol": protocol,
            "causal": protocol != "fifo",
            "total": protocol == "single-phase",
            "uniform": False,
            "run_max": 3,
            "history": 1000,
            "near": 3,
            "founding_patience": 2,
            **settings,
        }
        super().__init__(GroupSettings(founders=tuple(people[:founders]), **chosen), people)  # type: ignore[arg-type]
        self.founders = names[:founders]
        self.settling = Settling(self, random.Random(seed))

    def found(self) -> None:
        """All founders start, and come to a view of all of them, with nothing under way."""
        for name in self.founders:
            self.start(name, founds=True)
        self.settling.rounds(6)
        assert all(self.member(name).core.view.names() == tuple(self.founders) for name in self.founders)
        assert {self.member(name).core.mode for name in self.founders} == {"normal"}

    def member(self, name: str) -> Member:
        return self._member(name)

    def submit(self, name: str, payloads: Collection[bytes] = (b"x",)) -> None:
        super().submit(name, tuple(payloads))

    def pass_on(self, source: str, to: str, kind: type[GroupPacket] | None = None) -> None:
        """Everything arrives that is under way from one process to another, up to the first packet of this kind."""
        while True:
            link = next((one for one in self.deliverable() if (one[0], one[2]) == (source, to)), None)
            if link is None:
                assert kind is None, f"no {kind} was sent from {source} to {to}"
                return
            packet = self.first(link)
            self.arrive(link)
            if kind is not None and isinstance(packet, kind):
                return

    def promise(self, leader: str, *others: str) -> None:
        """A member begins a ballot, and these promise to it. With a journal, what that takes becomes durable."""
        self.ballot(leader)
        self.sync(leader)
        for name in others:
            self.pass_on(leader, name, Prepare)
            self.sync(name)
        for name in others:
            self.pass_on(name, leader, Promise)
        self.sync(leader)

    def vote(self, leader: str, *others: str) -> None:
        """These vote for what a member proposes."""
        for name in others:
            self.pass_on(leader, name, Accept)
            self.sync(name)
            self.pass_on(name, leader, Vote)

    def under_way(self, kind: type[GroupPacket]) -> list[tuple[str, str]]:
        """From whom to whom packets of this kind are on their way."""
        found = [(link, self.codec.packet(sent.packet)) for link, packets in self.links.items() for sent in packets]
        return [(link[0], link[2]) for link, packet in found if isinstance(packet, kind)]

    def first(self, link: tuple[str, int, str, int]) -> GroupPacket:
        """The packet that comes next on a link."""
        return self.codec.packet(self.links[link][0].packet)

    def part(self, *sides: Collection[str]) -> None:
        """Nothing passes from one side to another."""
        for mine in sides:
            for theirs in sides:
                if mine is not theirs:
                    self.blocked.update((source, to) for source in mine for to in theirs)

    def crash_silently(self, name: str, deaf: Collection[str] | None = None) -> None:
        """What it has sent to these processes, or to all, and has not arrived is lost with it."""
        names = self.processes if deaf is None else deaf
        self.crash(name, dict.fromkeys(names, 1 << 30))
        self.settling.tell_the_truth()

    def bring_up_to_date(self, name: str, donor: str) -> None:
        """A process that is no member takes the state of a member, and asks everybody to be one, too."""
        for _ in range(20):
            self.tick(name)
            for _ in range(9):
                self.pass_on(name, donor)
                self.pass_on(donor, name)
            if self.under_way(Join):
                return
        raise AssertionError(f"{name} never asks to be a member")

    def log(self, name: str) -> list[tuple[str, int]]:
        return list(self.processes[name].log)

    def cut(self, name: str) -> tuple[int, ...]:
        """How the last view of a member ended."""
        kept = self.member(name).membership.previous_view.packed()
        assert kept is not None
        return kept.value.cut

    def settle(self) -> None:
        """No more faults: everything comes to rest, as it must here."""
        assert self.settling.settle(), "a quorum is gone"
