"""Exhaustive exploration of small worlds: every schedule of some submissions and of all packets that follow.

A step changes one member only, and what it puts on the wire. So a member's state, with what it has delivered and still
has to send, gets a number the first time that it is seen, and so does every packet; the effect of an input on a numbered
state is computed once. A state of the world is then a tuple of small integers, and equal states that different
schedules reach are explored once. States are visited level by level: a level is all states after as many steps.

A message's payload is its own causal history, so that whoever delivers it can tell at once whether a cause is missing.
Delivered logs only grow, and a violation in them never heals, so none that some schedule shows is missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from math import prod

from quire.model.errors import QuireError
from quire.model.messages import MessageId, Run, make_run
from quire.model.orders import Guarantee, implied_by
from quire.model.packets import Packet
from quire.protocols.contract import Effects, Links, Protocol, Send
from tests.kit.state import clone, freeze
from tests.kit.world import Factory

Log = tuple[MessageId, ...]
State = tuple[tuple[int, ...], tuple[tuple[int, ...], ...], tuple[int, ...]]
"""The number of every member's state, the numbers of the packets on every channel (source * members + dest), and how
far the end of the view is that a crash brings about: empty; whether each member is RUNNING, FROZEN or GONE; or, when none
runs, UNION and the number of what they have together, and who is still FROZEN."""
Move = tuple[int, int, int]
"""Source, destination and packet number; a submission is (member, member, 0). CRASH, FREEZE and END are in the place
of a source; a crash has the number of a combination of losses in the place of a packet, an end that of the union."""

CRASH, FREEZE, END = -1, -2, -3
CRASHED = -1
"""In the place of the state of a member that crashed."""
RUNNING, FROZEN, GONE, UNION = -1, -2, -3, -4


class BrokenPromiseError(AssertionError):
    """Some schedule breaks a promise. `moves` is one of the shortest such."""

    def __init__(self, what: str, moves: Sequence[str]) -> None:
        super().__init__("\n  ".join([f"{what}, after", *moves]))
        self.what = what
        self.moves = moves


@dataclass
class Exploration:
    """What an exploration has seen. Every number is exact."""

    states: int = 0
    transitions: int = 0
    schedules: int = 0
    """How many different sequences of steps lead from the first state to a last one; 0 where a member may crash."""
    held_back: bool = False
    orders: set[tuple[Log, ...]] = field(default_factory=set)
    """The logs of all members at each last state."""

    def __str__(self) -> str:
        return f"{self.states:,} states, {self.transitions:,} transitions, {self.schedules:,} schedules"


@dataclass(frozen=True)
class _Local:
    protocol: Protocol
    todo: tuple[int, ...]
    sent: int
    log: Log
    known: frozenset[MessageId]
    held: frozenset[int]
    """The numbers of the packets with runs that it has, where somebody may crash."""

    def key(self) -> Hashable:
        return freeze(self.protocol), self.todo, self.log, self.known, self.held


@dataclass(frozen=True)
class _Outcome:
    local: int
    sends: tuple[tuple[int, int], ...]
    """(destination, packet number), in order."""
    delivered: bool


class Explorer:
    """All schedules in which member i sends runs of `script[i]` messages, in this order.

    With links that are only reliable, any packet of a channel may come next; repeated packets are not explored. Where a
    member `may_crash`, it does so at any time or never, and loses any part of the tail of what it had under way; links keep
    their order then. The others freeze, each at any time after that, and deliver what is left of what they have together.
    """

    def __init__(self, factory: Factory, script: Sequence[Sequence[int]], *, may_crash: int | None = None) -> None:
        self.members = len(script)
        self.script = script
        self.may_crash = may_crash
        first = [factory(me, self.members) for me in range(self.members)]
        self.promises = implied_by(first[0].promises)
        self.reordering = first[0].links == Links.RELIABLE and may_crash is None
        self._locals: list[_Local] = []
        self._local_numbers: dict[Hashable, int] = {}
        self._packets: list[Packet] = []
        self._packet_numbers: dict[Packet, int] = {}
        self._unions: list[frozenset[int]] = []
        self._outcomes: dict[tuple[int, int, int], _Outcome] = {}
        self._prefixes: dict[tuple[int, int], bool] = {}
        members = tuple(
            self._number(_Local(protocol, tuple(runs), 0, (), frozenset(), frozenset()))
            for protocol, runs in zip(first, script, strict=True)
        )
        self._start: State = (members, ((),) * self.members**2, ())

    def explore(self) -> Exploration:
        """Visit every state. Raises BrokenPromiseError where a promise is broken, with the moves that lead there."""
        try:
            return self._levels(None)
        except _BadStateError as bad:
            # The way there is not kept while all goes well, since it takes much memory.
            parents: dict[State, tuple[State, Move]] = {}
            with suppress(_BadStateError):
                self._levels(parents)
            raise BrokenPromiseError(bad.what, self._moves_to(bad, parents)) from None

    def _levels(self, parents: dict[State, tuple[State, Move]] | None) -> Exploration:
        seen = Exploration()
        level: dict[State, int] = {self._start: 1}
        # Without a crash a state is always reached by the same number of steps, so no level meets another.
        visited: set[State] = set()
        while level:
            following: Counter[State] = Counter()
            for state, paths in level.items():
                moves = self._moves(state)
                if not moves:
                    self._check_last(state)
                    seen.schedules += paths if self.may_crash is None else 0
                    seen.orders.add(tuple(self._locals[local].log for local in state[0] if local != CRASHED))
                if self.may_crash is not None and not state[2]:
                    moves += self._crashes(state)
                for move in moves:
                    after = self._step(state, move)
                    if after not in visited:
                        following[after] += paths
                    if parents is not None:
                        parents.setdefault(after, (state, move))
                seen.states += 1
                seen.transitions += len(moves)
            level = following
            if self.may_crash is not None:
                visited.update(level)
        seen.held_back = any(local.protocol.held_back() for local in self._locals)
        return seen

    def _moves(self, state: State) -> list[Move]:
        locals_, channels, flush = state
        if flush and flush[0] == UNION:
            return [(END, me, flush[1]) for me, progress in enumerate(flush[2:]) if progress == FROZEN]
        running = [not flush or flush[me] == RUNNING for me in range(self.members)]
        moves = [(me, me, 0) for me, local in enumerate(locals_) if running[me] and self._locals[local].todo]
        for place, channel in enumerate(channels):
            source, dest = divmod(place, self.members)
            if channel and running[dest]:
                if self.reordering:
                    moves += [(source, dest, packet) for packet in dict.fromkeys(channel)]
                else:
                    moves.append((source, dest, channel[0]))
        if flush:
            moves += [(FREEZE, me, 0) for me in range(self.members) if running[me]]
        return moves

    def _crashes(self, state: State) -> list[Move]:
        """A crash for every combination of how many packets get through to each of the others."""
        kept = [range(len(channel) + 1) for channel in self._channels_from(state, self.may_crash)]
        return [(CRASH, self.may_crash or 0, number) for number in range(prod(map(len, kept)))]

    def _channels_from(self, state: State, member: int | None) -> list[tuple[int, ...]]:
        assert member is not None
        return [state[1][member * self.members + dest] for dest in range(self.members)]

    def _step(self, state: State, move: Move) -> State:
        locals_, channels, flush = state
        source, dest, packet = move
        if source == CRASH:
            return self._crash(state, dest, packet)
        if source == FREEZE:
            return locals_, channels, self._freeze(locals_, flush, dest)
        outcome = self._outcomes.get((locals_[dest], source, packet))
        if outcome is None:
            try:
                outcome = self._outcomes[locals_[dest], source, packet] = self._compute(locals_[dest], source, dest, packet)
            except (AssertionError, QuireError) as error:
                raise _BadStateError(str(error), state, move) from None
        after = list(channels)
        if source >= 0 and source != dest:
            place = source * self.members + dest
            channel = list(after[place])
            channel.remove(packet)
            after[place] = tuple(channel)
        for to, number in outcome.sends:
            if locals_[to] != CRASHED:
                place = dest * self.members + to
                channel = [*after[place], number]
                after[place] = tuple(sorted(channel) if self.reordering else channel)
        members = (*locals_[:dest], outcome.local, *locals_[dest + 1 :])
        if outcome.delivered and Guarantee.TOTAL in self.promises:
            for other in members:
                if other != CRASHED and not self._one_sequence(outcome.local, other):
                    raise _BadStateError("two members' logs are not prefixes of one sequence", state, move)
        if source == END:
            flush = (*flush[: dest + 2], GONE, *flush[dest + 3 :])
        return members, tuple(after), flush

    def _crash(self, state: State, member: int, number: int) -> State:
        locals_, channels, _ = state
        after = list(channels)
        for dest, channel in enumerate(self._channels_from(state, member)):
            number, kept = divmod(number, len(channel) + 1)
            after[member * self.members + dest] = channel[:kept]
            after[dest * self.members + member] = ()
        members = (*locals_[:member], CRASHED, *locals_[member + 1 :])
        return members, tuple(after), tuple(GONE if me == member else RUNNING for me in range(self.members))

    def _freeze(self, locals_: tuple[int, ...], flush: tuple[int, ...], me: int) -> tuple[int, ...]:
        flush = (*flush[:me], FROZEN, *flush[me + 1 :])
        if RUNNING in flush:
            return flush
        union = frozenset[int]().union(*(self._locals[local].held for local in locals_ if local != CRASHED))
        if union not in self._unions:
            self._unions.append(union)
        return (UNION, self._unions.index(union), *flush)

    def _compute(self, number: int, source: int, me: int, packet: int) -> _Outcome:
        """The effect of one input on one member. What it delivers is checked against what it had delivered before."""
        before = self._locals[number]
        protocol = clone(before.protocol)
        todo, sent, log, known, held = before.todo, before.sent, before.log, before.known, before.held
        effects: Effects
        if source == me:
            run = _run_with_history(me, sent, todo[0], known)
            effects = protocol.submit(run)
            todo, sent = todo[1:], run.end
            known = known.union(MessageId(me, seq) for seq in range(run.first, run.end))
        elif source == END:
            counts = Counter(message.origin for message in log)
            union = [self._packets[number] for number in self._unions[packet]]
            effects = protocol.remainder(union, [counts[member] for member in range(self.members)])
        else:
            effects = protocol.receive(source, self._packets[packet])
            held = self._hold(held, packet)
        sends: list[tuple[int, int]] = []
        for effect in effects:
            if isinstance(effect, Send):
                others = [other for other in range(self.members) if other != me]
                number = self._packet_number(effect.packet)
                held = self._hold(held, number)
                sends += [(to, number) for to in (others if effect.to is None else effect.to)]
                continue
            for seq, payload in enumerate(effect.run.payloads(), effect.run.first):
                message = MessageId(effect.run.origin, seq)
                past = _read_history(payload)
                self._check_delivery(me, log, message, past)
                log = (*log, message)
                known = known.union(past, (message,))
        after = self._number(_Local(protocol, todo, sent, log, known, held))
        return _Outcome(after, tuple(sends), log != before.log)

    def _hold(self, held: frozenset[int], packet: int) -> frozenset[int]:
        return held if self.may_crash is None or self._packets[packet].carried() is None else held | {packet}

    def _check_delivery(self, me: int, log: Log, message: MessageId, past: frozenset[MessageId]) -> None:
        assert message not in log, f"member {me} delivers {message} twice"
        missing = past.difference(log)
        if Guarantee.CAUSAL not in self.promises:
            missing = frozenset(cause for cause in missing if cause.origin == message.origin)
        assert not missing, f"member {me} delivers {message} before {min(missing)}, which happened before it"

    def _check_last(self, state: State) -> None:
        """Everything is delivered that members which did not crash sent or delivered."""
        logs = {me: self._locals[local].log for me, local in enumerate(state[0]) if local != CRASHED}
        sent = {me: self._locals[state[0][me]].sent if state[2] else sum(self.script[me]) for me in logs}
        due = {MessageId(me, seq) for me in logs for seq in range(sent[me])}.union(*logs.values())
        for me, log in logs.items():
            if due.difference(log):
                raise _BadStateError(f"member {me} never delivers {min(due.difference(log))}", state, None)
            if not state[2] and self._locals[state[0][me]].protocol.held_back():
                raise _BadStateError(f"member {me} holds something back at the end", state, None)

    def _one_sequence(self, one: int, other: int) -> bool:
        known = self._prefixes.get((one, other))
        if known is None:
            log, their_log = self._locals[one].log, self._locals[other].log
            shorter = min(len(log), len(their_log))
            known = self._prefixes[one, other] = log[:shorter] == their_log[:shorter]
        return known

    def _number(self, local: _Local) -> int:
        number = self._local_numbers.setdefault(local.key(), len(self._locals))
        if number == len(self._locals):
            self._locals.append(local)
        return number

    def _packet_number(self, packet: Packet) -> int:
        number = self._packet_numbers.setdefault(packet, len(self._packets))
        if number == len(self._packets):
            self._packets.append(packet)
        return number

    def _moves_to(self, bad: _BadStateError, parents: dict[State, tuple[State, Move]]) -> list[str]:
        moves = [bad.move] if bad.move is not None else []
        state = bad.state
        while state in parents:
            state, move = parents[state]
            moves.append(move)
        return [self._in_words(move) for move in reversed(moves)]

    def _in_words(self, move: Move) -> str:
        source, dest, number = move
        if source == dest:
            return f"member {source} submits"
        if source < 0:
            return f"member {dest} {({CRASH: 'crashes', FREEZE: 'freezes', END: 'ends its view'})[source]}"
        packet = self._packets[number]
        return f"member {dest} takes {packet.name} of member {source}: {packet}"


class _BadStateError(Exception):
    def __init__(self, what: str, state: State, move: Move | None) -> None:
        super().__init__(what)
        self.what = what
        self.state = state
        self.move = move


def _run_with_history(member: int, first: int, count: int, known: frozenset[MessageId]) -> Run:
    """A run each of whose payloads names all messages that happened before it."""
    names = [str(message) for message in sorted(known)]
    payloads = [
        " ".join([*names, *(str(MessageId(member, seq)) for seq in range(first, first + part))]).encode()
        for part in range(count)
    ]
    return make_run(member, first, payloads)


@cache
def _read_history(payload: bytes) -> frozenset[MessageId]:
    return frozenset(MessageId(*map(int, name.split(":"))) for name in payload.decode().split())
