"""Small traces of a group whose members crash, are excluded, leave, come back and resume, with planted faults."""

from __future__ import annotations

import random
from itertools import count

from quire.trace.views import Operation, ViewEvent, ViewMember, members_word, operation_word
from tests.audit.oracle import Event, Message
from tests.audit.traces import Trace, timed

FAULTS = (
    "loss", "other members", "jump", "elsewhere", "repeat", "sent again", "fast", "forget", "silent crash", "outside", "swap",
    "no sessions",
)  # fmt: skip


def happening(p: int, what: ViewEvent, number: int, incarnation: int, word: str | None = None) -> Event:
    return Event("view", p, number, (), "g", object=word, op=what.value, txn=str(incarnation))


def installed(p: int, number: int, members: dict[int, int]) -> Event:
    word = members_word(ViewMember(*member) for member in members.items())
    return Event("view", p, number, tuple(members), "g", object=word, op="install", txn=str(members.get(p, 0)))


class Group:
    """A group as it might run, one view after the other, that writes down what its members do."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.size = rng.randint(2, 5)
        self.faults = {fault for fault in FAULTS if rng.random() < rng.choice((0.0, 0.1, 0.3))}
        self.logs: list[list[Event]] = [[] for _ in range(self.size)]
        self.number = rng.choice((0, 1, 7))
        self.incarnation = [1] * self.size
        self.members = {p: 1 for p in range(self.size) if rng.random() < 0.8} or {0: 1}
        self.fresh = [count() for _ in range(self.size)]
        self.operations = [count(1) for _ in range(self.size)]
        self.submitted: list[tuple[Operation, bool]] = []
        self.down: set[int] = set()
        self.sent: list[Event] = []
        """In the present view."""
        self.has: dict[int, list[Message]] = {}
        """What each member has delivered in the present view."""
        self.left_over: list[Message] = []

    def strikes(self, fault: str, rate: float = 0.25) -> bool:
        return fault in self.faults and self.rng.random() < rate

    def run(self) -> Trace:
        for p in self.members:
            self.install(p)
        for _ in range(self.rng.randint(1, 4)):
            for _ in range(self.rng.randint(0, 8)):
                self.step()
            self.change()
        for _ in range(self.rng.randint(0, 5)):
            self.step()
        self.flush(list(self.members), [(e.origin, e.seq) for e in self.sent])
        return timed(self.logs, frozenset(self.down))

    def install(self, p: int) -> None:
        members, number = dict(self.members), self.number
        if self.strikes("other members", 0.1):
            members[self.rng.randrange(self.size)] = 99
        if self.strikes("jump", 0.1):
            number = max(0, number + self.rng.choice((1, 2, -1, -2)))
        event = installed(p, number, members)
        self.logs[p].append(event._replace(txn=str(self.incarnation[p])))
        self.has[p] = []

    def step(self) -> None:
        p = self.rng.choice(list(self.members))
        if self.rng.random() < 0.45:
            self.send(p)
        else:
            waiting = [(e.origin, e.seq) for e in self.sent if (e.origin, e.seq) not in self.has[p]]
            if self.strikes("elsewhere", 0.1) and self.left_over:
                waiting = [self.rng.choice(self.left_over)]
            if waiting:
                self.deliver(p, waiting[-1 if self.strikes("swap") else 0])
        if self.strikes("outside", 0.05):
            known = [e for log in self.logs for e in log if e.kind == "send"]
            for event in known[:1]:
                self.logs[self.rng.randrange(self.size)].append(Event("deliver", event.origin, event.seq))
        if self.rng.random() < 0.05:
            self.logs[p].append(self.rng.choice((Event("packet", -1, -1), happening(p, ViewEvent.CUT, self.number, 1))))

    def send(self, p: int) -> None:
        seq = next(self.fresh[p])
        operation = Operation(f"s{p}", next(self.operations[p]))
        if self.strikes("sent again") and self.submitted:
            operation = self.rng.choice(self.submitted)[0]
        self.submitted.append((operation, True))
        word = None if self.strikes("no sessions", 0.9) else operation_word(operation, seq)
        event = Event("send", p, seq, tuple(self.members), "g", txn=word)
        self.sent.append(event)
        self.logs[p].append(event)

    def deliver(self, p: int, message: Message) -> None:
        self.has[p].append(message)
        words = [e.txn for e in self.sent if (e.origin, e.seq) == message]
        said = self.rng.choice((None, words[0])) if words else None
        self.logs[p].append(Event("deliver", *message, None, "g", txn=said))
        if self.strikes("repeat", 0.1):
            self.logs[p].append(Event("deliver", *message, None, "g"))

    def flush(self, survivors: list[int], cut: list[Message]) -> None:
        for p in survivors:
            for message in cut:
                if message not in self.has[p] and not self.strikes("loss", 0.15):
                    self.deliver(p, message)

    def resume(self, p: int) -> None:
        """It crashes, comes back with a part of its state, and stays in the view."""
        if self.rng.random() < 0.5:
            self.logs[p].append(happening(p, ViewEvent.CRASH, self.number, self.incarnation[p]))
        self.incarnation[p] += 1
        kept = len(self.has[p]) - self.rng.choice((0, 0, 1, 2))
        kept = max(0, kept)
        self.logs[p].append(happening(p, ViewEvent.RESUME, self.number, self.incarnation[p], str(kept)))
        if not self.strikes("forget", 0.5):
            self.has[p] = self.has[p][:kept]

    def change(self) -> None:
        rng = self.rng
        for p in list(self.members):
            if rng.random() < 0.15:
                self.resume(p)
        fate = {p: rng.choice(("stay", "stay", "stay", "crash", "excluded", "left")) for p in self.members}
        survivors = [p for p, what in fate.items() if what == "stay"]
        if not survivors:
            return
        every = [(e.origin, e.seq) for e in self.sent]
        needed = {m for p in survivors for m in self.has[p]} | {m for m in every if fate[m[0]] in ("stay", "left")}
        if "fast" not in self.faults:
            needed |= {m for own in self.has.values() for m in own}
        cut = [m for m in every if m in needed or rng.random() < 0.3]
        self.flush(survivors, cut)
        for p, what in fate.items():
            if what == "excluded" or what == "left":
                self.logs[p].append(happening(p, ViewEvent(what), self.number, self.incarnation[p]))
            elif what == "crash":
                self.down.add(p)
                if not self.strikes("silent crash", 0.5):
                    self.logs[p].append(happening(p, ViewEvent.CRASH, self.number, self.incarnation[p]))
        self.left_over = every
        self.sent, self.has = [], {}
        self.number += 1
        joiners = [p for p in range(self.size) if p not in survivors and rng.random() < 0.4]
        for p in joiners:
            self.incarnation[p] += 1
            self.down.discard(p)
        self.members = {p: self.incarnation[p] for p in (*survivors, *joiners)}
        for p in self.members:
            self.install(p)


def random_views(rng: random.Random) -> Trace:
    return Group(rng).run()
