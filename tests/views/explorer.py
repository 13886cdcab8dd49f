"""Every schedule of one change of view: all interleavings of some submissions, a crash, ballots and the packets that follow.

A step changes one process only, and what it has under way. So the state of a process gets a number the first time that it
is seen, and so does every packet, and what an input does to a numbered state is computed once. A state of the world is then
a tuple of small numbers. States that different schedules reach are explored once; they are told apart by a hash of 64 bits.

Two kinds of packets are taken as soon as they come first on their link, which keeps the number of states down. One changes
nothing at its receiver and is not answered: it would change nothing later either, for members only ever move on. The other
says that its sender has installed a view: it only lets its receiver forget, and the sooner, the harder for the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import NamedTuple

import msgspec

from quire.model.payloads import Messages
from quire.views.effects import Checkpoint, Deliver, Effect, Exclude, Install, Restore, Send
from quire.views.member import Member
from quire.views.packets import Data, Installed, Vote
from tests.views.snapshots import Operation, Snapshot, check_pair
from tests.views.stage import Stage

State = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]
"""The number of every process's state, and the numbers of the packets on every link (source * processes + destination)."""
Move = tuple[str, int, int]
"""What happens, to whom or from whom, and to whom or with which losses."""

RECEIVE, SUBMIT, BALLOT, CRASH, SUSPECT, TICK = "receive", "submit", "ballot", "crash", "suspect", "tick"
ROUNDS = 60
"""So often every timer runs before everything must have come to rest."""


class Packet(NamedTuple):
    data: bytes
    source_incarnation: int
    incarnation: int
    """For which it is; 0: for any."""


@dataclass(frozen=True)
class Outcome:
    process: int
    sends: tuple[tuple[int, int], ...]
    """(destination, packet number), in order."""
    shows: bool
    """Whether there are new deliveries or views."""


@dataclass
class Explored:
    """What an exploration has seen."""

    states: int = 0
    transitions: int = 0
    ends: set[tuple[int, ...]] = field(default_factory=set)
    """The processes' states where nothing more happens by itself."""
    next_views: set[tuple[str, ...]] = field(default_factory=set)
    """Who was in the view after the one in which it began, on some schedule."""


class Explorer:
    """`submissions`: how many messages each process sends. `ballots`: how many ballots each may start, at any time.
    `may_crash`: who does so, at any time or never, with any part of what it has under way; the others then suspect it, and
    each of the `heirs` may start one more ballot. `hasty`: leaders wait for no more than a majority of promises."""

    def __init__(
        self,
        stage: Stage,
        *,
        submissions: dict[str, int],
        ballots: dict[str, int],
        may_crash: str | None = None,
        heirs: Collection[str] = (),
        hasty: bool = False,
    ) -> None:
        self.stage, self.heirs, self.hasty = stage, heirs, hasty
        self.names = list(stage.processes)
        self.may_crash = None if may_crash is None else self.names.index(may_crash)
        self._processes: list[Snapshot] = []
        self._process_numbers: dict[Hashable, int] = {}
        self._packets: list[Packet] = []
        self._packet_numbers: dict[Packet, int] = {}
        self._installed: set[int] = set()
        """The packets that only let their receiver forget."""
        self._outcomes: dict[tuple[int, str, int, int, bool], Outcome] = {}
        self._agreed: set[tuple[int, int]] = set()
        self._start = self._first(submissions, ballots)

    def _first(self, submissions: dict[str, int], ballots: dict[str, int]) -> State:
        processes, count = [], len(self.names)
        for name in self.names:
            log, member = tuple(self.stage.log(name)), self.stage.member(name)
            snapshot = Snapshot(b"", None, name, 0, submissions.get(name, 0), ballots.get(name, 0), out=True, log=log)
            if member.core.mode == "normal":
                view = member.core.view
                snapshot = replace(snapshot, out=False, counts=(0,) * len(view.members), views=((view, log),))
            processes.append(self._number(snapshot.of(member)))
        links: list[tuple[int, ...]] = [()] * count**2
        for (source, _, to, _), packets in self.stage.links.items():
            made = [self._packet(Packet(one.packet, one.source_incarnation, one.incarnation)) for one in packets]
            links[self.names.index(source) * count + self.names.index(to)] += tuple(made)
        return tuple(processes), tuple(links)

    # Visiting every state.

    def explore(self) -> Explored:
        """Raises AssertionError where a promise is broken, with the moves that lead there."""
        seen = Explored()
        visited = {hash(self._start)}
        path: list[Move] = []
        branches = [self._visit(self._start, seen)]
        try:
            while branches:
                step = next(branches[-1], None)
                if step is None:
                    branches.pop()
                    del path[len(branches) - 1 :]
                    continue
                move, state = step
                seen.transitions += 1
                if hash(state) not in visited:
                    visited.add(hash(state))
                    path.append(move)
                    branches.append(self._visit(state, seen))
        except AssertionError as error:
            raise AssertionError("\n  ".join([f"{error}, after", *map(self._told, path), "and one step more"])) from error
        return seen

    def _visit(self, state: State, seen: Explored) -> Iterator[tuple[Move, State]]:
        seen.states += 1
        moves = self._moves(state)
        if not moves:
            seen.ends.add(state[0])
            for number in state[0]:
                seen.next_views.update(view.names() for view, _ in self._processes[number].views if view.epoch == 3)
        for move in moves:
            yield move, self._step(state, move)

    def _moves(self, state: State) -> list[Move]:
        processes, links = state
        moves: list[Move] = []
        for place, packets in enumerate(links):
            if packets:
                source, to = divmod(place, len(self.names))
                outcome = self._outcome(processes[to], RECEIVE, source, packets[0])
                if packets[0] in self._installed or (outcome.process == processes[to] and not outcome.sends):
                    return [(RECEIVE, source, to)]
                moves.append((RECEIVE, source, to))
        for me, number in enumerate(processes):
            process = self._processes[number]
            moves += [(SUBMIT, me, 0)] * (process.submissions > 0) + [(BALLOT, me, 0)] * (process.ballots > 0)
        if self.may_crash is not None and self._processes[processes[self.may_crash]].state:
            losses = prod(len(packets) + 1 for packets in self._sent_by(links, self.may_crash))
            moves += [(CRASH, self.may_crash, number) for number in range(losses)]
        return moves

    def _sent_by(self, links: Collection[tuple[int, ...]], who: int) -> list[tuple[int, ...]]:
        count = len(self.names)
        return list(links)[who * count : (who + 1) * count]

    # Steps.

    def _step(self, state: State, move: Move) -> State:
        processes, links = list(state[0]), list(state[1])
        kind, first, second = move
        if kind == RECEIVE:
            self._receive(processes, links, first, second)
        elif kind == CRASH:
            self._crash(processes, links, first, second)
        else:
            self._input(processes, links, first, kind)
        return tuple(processes), tuple(links)

    def _receive(self, processes: list[int], links: list[tuple[int, ...]], source: int, to: int) -> None:
        place = source * len(self.names) + to
        packet, links[place] = links[place][0], links[place][1:]
        self._apply(processes, links, to, self._outcome(processes[to], RECEIVE, source, packet))

    def _input(self, processes: list[int], links: list[tuple[int, ...]], me: int, kind: str, about: int = 0) -> None:
        self._apply(processes, links, me, self._outcome(processes[me], kind, about, 0))

    def _crash(self, processes: list[int], links: list[tuple[int, ...]], who: int, losses: int) -> None:
        count = len(self.names)
        for to, packets in enumerate(self._sent_by(links, who)):
            losses, kept = divmod(losses, len(packets) + 1)
            links[who * count + to] = packets[:kept]
            links[to * count + who] = ()
        processes[who] = self._number(self._processes[processes[who]].crashed())
        for me in range(count):
            if me != who:
                self._input(processes, links, me, SUSPECT, who)

    def _apply(self, processes: list[int], links: list[tuple[int, ...]], me: int, outcome: Outcome) -> None:
        processes[me] = outcome.process
        for to, packet in outcome.sends:
            target = self._processes[processes[to]]
            if target.state and self._packets[packet].incarnation in (0, target.incarnation):
                links[me * len(self.names) + to] += (packet,)
        if outcome.shows:
            for other in processes:
                if (outcome.process, other) not in self._agreed:
                    check_pair(self.stage.settings, self._processes[outcome.process], self._processes[other])
                    self._agreed |= {(outcome.process, other), (other, outcome.process)}

    # What one input does to one process.

    def _outcome(self, number: int, kind: str, about: int, packet: int) -> Outcome:
        key = (number, kind, about, packet, self.hasty)
        found = self._outcomes.get(key)
        if found is None:
            found = self._outcomes[key] = self._compute(number, kind, about, packet)
        return found

    def _compute(self, number: int, kind: str, about: int, packet: int) -> Outcome:
        before = process = self._processes[number]
        member = process.member()
        if kind == RECEIVE:
            arrived = self._packets[packet]
            if arrived.incarnation not in (0, process.incarnation):
                return Outcome(number, (), False)
            read = self.stage.codec.packet(arrived.data)
            process = process.received(read)
            effects = member.receive(self.names[about], arrived.source_incarnation, read, hasty=self.hasty)
        elif kind == SUBMIT:
            process = replace(process, submissions=process.submissions - 1)
            effects = member.submit(Messages.of([b"x"]))
        elif kind == BALLOT:
            process = replace(process, ballots=process.ballots - 1)
            effects = member.start_ballot(hasty=self.hasty)
        elif kind == SUSPECT:
            process = replace(process, ballots=process.ballots + (process.name in self.heirs))
            effects = member.suspect(self.names[about])
        else:
            effects = member.tick()
        sends: list[tuple[int, int]] = []
        process = self._perform(process, member, effects, sends).of(member)
        shows = (process.log, process.views) != (before.log, before.views)
        return Outcome(self._number(process), tuple(sends), shows)

    def _perform(
        self, process: Snapshot, member: Member, effects: Collection[Effect], sends: list[tuple[int, int]]
    ) -> Snapshot:
        for effect in effects:
            match effect:
                case Send():
                    process = self._sending(process, member, effect)
                    data = self.stage.codec.encode(effect.packet)
                    for to, addressee in effect.addressees():
                        made = Packet(data, member.core.me.incarnation, addressee)
                        sends.append((self.names.index(to), self._packet(made)))
                case Deliver():
                    process = process.delivered(effect)
                case Install():
                    process = process.installed(effect)
                case Exclude():
                    process = replace(process, out=True)
                case Checkpoint():
                    more = member.checkpointed(msgspec.msgpack.encode(process.log))
                    process = self._perform(process, member, more, sends)
                case Restore():
                    process = replace(process, log=msgspec.msgpack.decode(effect.state, type=tuple[Operation, ...]))
                case _:
                    pass
        return process

    def _sending(self, process: Snapshot, member: Member, effect: Send) -> Snapshot:
        packet = effect.packet
        if isinstance(packet, Vote) and packet.epoch == member.core.view.epoch:
            accepted = member.membership.agreement.accepted
            assert accepted is not None
            held = member.membership.ordering.unstable.holds(accepted.value.cut)
            assert held, f"{process.name} votes, and lacks something of the cut"
        if isinstance(packet, Data):
            own = packet.run.origin == member.membership.ordering.rank
            return replace(process.received(packet), sent=packet.run.end if own else process.sent)
        return process

    # The end of a run.

    def settle(self, end: tuple[int, ...]) -> bool:
        """Have timers run in turn, and everything arrive, until everything is at rest; whether a quorum is there, so that it
        must be. Raises AssertionError where it never is."""
        self.hasty = False
        there = [self._processes[number].name for number in end if self._processes[number].state]
        views = [view for number in end if (view := self._processes[number].newest()) is not None]
        if not max(views, key=lambda view: view.epoch).is_quorum(there, self.stage.settings.tie):
            return False
        processes, links = list(end), [()] * len(self.names) ** 2  # type: list[int], list[tuple[int, ...]]
        why = ""
        for _ in range(ROUNDS):
            for me, number in enumerate(processes):
                if self._processes[number].state:
                    self._input(processes, links, me, TICK)
            while any(links):
                for place in range(len(links)):
                    if links[place]:
                        self._receive(processes, links, *divmod(place, len(self.names)))
            why = self._why_not(processes)
            if not why:
                return True
        raise AssertionError(f"it never comes to rest: {why}")

    def _why_not(self, processes: Collection[int]) -> str:
        there = [one for number in processes if (one := self._processes[number]).state]
        members = [process.member() for process in there]
        where = {(member.core.mode, member.core.view.epoch) for member in members}
        if len(where) > 1 or {mode for mode, _ in where} != {"normal"}:
            return f"not all are in one view: {where}"
        if set(members[0].core.view.names()) != {process.name for process in there}:
            return f"the view is {members[0].core.view.names()}"
        if any(member.core.operations.unsettled() for member in members):
            return "something was not executed"
        logs = {process.log if self.stage.settings.total else tuple(sorted(process.log)) for process in there}
        return "logs differ" if len(logs) > 1 else ""

    # Numbers and names.

    def _number(self, process: Snapshot) -> int:
        number = self._process_numbers.setdefault(process.key(), len(self._processes))
        if number == len(self._processes):
            self._processes.append(process)
        return number

    def _packet(self, packet: Packet) -> int:
        number = self._packet_numbers.setdefault(packet, len(self._packets))
        if number == len(self._packets):
            self._packets.append(packet)
            if isinstance(self.stage.codec.packet(packet.data), Installed):
                self._installed.add(number)
        return number

    def _told(self, move: Move) -> str:
        kind, first, second = move
        more = {RECEIVE: f" -> {self.names[second % len(self.names)]}", CRASH: f", losses {second}"}
        return f"{kind} {self.names[first]}{more.get(kind, '')}"
