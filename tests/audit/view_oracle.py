"""What the checks of views mean, by brute force; and what those of any messages mean where there are views."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from quire.trace.views import parse_operation_word
from tests.audit.oracle import Event, Logs, Message, happened_before


class Stay:
    def __init__(self, p: int, number: int, members: str, incarnation: str, line: object) -> None:
        self.p, self.number, self.members, self.incarnation, self.line = p, number, members, incarnation, line
        self.state: list[tuple[int, Message]] = []
        """What it has delivered in the view, each with its place in the log."""
        self.end = ""
        self.next: Stay | None = None
        self.resumed = False


class Expected(NamedTuple):
    synchrony: int
    uniform: int
    once: int


class Orders(NamedTuple):
    integrity: int
    agreement: int
    fifo: int
    causal: int


class Walk:
    """One process's way through the views."""

    def __init__(self, p: int, log: list[Event], crashed: bool) -> None:
        self.stays: list[Stay] = []
        self.at: list[Stay | None] = []
        self.latest: list[int] = []
        """At each event the highest number that it had seen."""
        self.forgotten: set[int] = set()
        now: Stay | None = None
        high = -1
        for place, e in enumerate(log):
            if e.kind == "view" and e.op == "install":
                same = now is not None and now.incarnation == e.txn
                new = Stay(p, e.seq, e.object or "", e.txn or "", now.line if now and same else object())
                if now is not None:
                    now.end = ("on" if e.seq == now.number + 1 else "jump") if same else "crash"
                    now.next = new
                now = new
                self.stays.append(now)
            elif e.kind == "view" and e.op == "resume":
                if now is not None:
                    now.end = "crash"
                new = Stay(p, e.seq, "", e.txn or "", object())
                new.resumed = True
                for index in reversed(range(len(self.stays))):
                    old = self.stays[index]
                    if old.number == e.seq:
                        kept = int(e.object or "")
                        new.state, new.members, new.line = old.state[:kept], old.members, old.line
                        for undone in [old.state[kept:], *(later.state for later in self.stays[index + 1 :])]:
                            self.forgotten |= {there for there, _ in undone}
                        break
                now = new
                self.stays.append(now)
            elif e.kind == "view" and e.op in ("excluded", "left", "crash"):
                if now is not None:
                    now.end = e.op
                now = None
            elif e.kind == "deliver" and now is not None:
                now.state.append((place, (e.origin, e.seq)))
            if now is not None:
                high = max(high, now.number)
            self.at.append(now)
            self.latest.append(high)
        if now is not None:
            now.end = "crash" if crashed else "end"


def walk(logs: Logs, crashed: frozenset[int]) -> tuple[list[Walk], list[Stay], dict[int, bool]]:
    walks = [Walk(p, log, p in crashed) for p, log in enumerate(logs)]
    stays = [stay for way in walks for stay in way.stays]
    last = max((stay.number for stay in stays), default=-1)
    bound = {id(stay): stay.end == "on" or (stay.end == "end" and stay.number == last) for stay in stays}
    return walks, stays, bound


def judge(logs: Logs, crashed: frozenset[int]) -> Expected:
    walks, stays, bound = walk(logs, crashed)
    first: dict[int, str] = {}
    different = sum(first.setdefault(stay.number, stay.members) != stay.members for stay in stays if not stay.resumed)
    jumped = sum(stay.end == "jump" for stay in stays)
    sent: dict[Message, int | None] = {}
    for p, log in enumerate(logs):
        for place, e in enumerate(log):
            if e.kind == "send" and e.origin == p:
                stay = walks[p].at[place]
                sent.setdefault((p, e.seq), stay.number if stay else None)
    elsewhere = 0
    for p, log in enumerate(logs):
        for place, e in enumerate(log):
            if e.kind == "deliver" and (e.origin, e.seq) in sent:
                here = walks[p].at[place]
                elsewhere += here is None or sent[e.origin, e.seq] != here.number
    lacked = lost = 0
    for one in stays:
        mine = {m for _, m in one.state}
        together, anywhere = set[Message](), set[Message]()
        for other in stays:
            theirs = {m for _, m in other.state}
            if other.number == one.number:
                anywhere |= theirs
                if one.next and other.next and other.end == "on" and one.next.members == other.next.members:
                    together |= theirs
        lacked += len(together - mine) if one.end == "on" else 0
        lost += len(anywhere - mine) if bound[id(one)] else 0
    return Expected(different + jumped + elsewhere + lacked, lost, _twice(logs, walks, bound))


def _twice(logs: Logs, walks: list[Walk], bound: dict[int, bool]) -> int:
    operation: dict[Message, tuple[str, int]] = {}
    for kind in ("send", "deliver"):
        for p, log in enumerate(logs):
            for e in log:
                word = parse_operation_word(e.txn or "")
                if e.kind == kind and word is not None and (kind == "deliver" or e.origin == p):
                    operation.setdefault((e.origin, e.seq), (word.session, word.number + e.seq))
    delivered = []
    for p, log in enumerate(logs):
        for place, e in enumerate(log):
            m = (e.origin, e.seq)
            if e.kind == "deliver" and place not in walks[p].forgotten and m in operation:
                stay = walks[p].at[place]
                delivered.append((operation[m], m, stay.line if stay else p, bound[id(stay)] if stay else True))
    return len(
        {
            one[0]
            for one, other in combinations(delivered, 2)
            if one[0] == other[0] and (one[2] == other[2] or (one[1] != other[1] and one[3] and other[3]))
        }
    )


def last_delivery(log: list[Event], of: Event) -> int:
    """The place of the last delivery of the same message; -1 if there is none."""
    return max((place for place, e in enumerate(log) if e.kind == "deliver" and e[1:3] == of[1:3]), default=-1)


def orders(logs: Logs, crashed: frozenset[int]) -> Orders | None:
    """As `oracle.judge`, where messages belong to views; None where no order of all events exists."""
    walks, stays, bound = walk(logs, crashed)
    logs = [
        [
            e._replace(kind="packet") if e.kind == "deliver" and last_delivery(log[:place], e) in way.forgotten else e
            for place, e in enumerate(log)
        ]
        for way, log in zip(walks, logs, strict=True)
    ]
    sends: dict[Message, tuple[int, int]] = {}
    dests: dict[Message, frozenset[int]] = {}
    view: dict[Message, int] = {}
    integrity = 0
    for p, log in enumerate(logs):
        for place, e in enumerate(log):
            if e.kind == "send":
                sends[p, e.seq], dests[p, e.seq], view[p, e.seq] = (p, place), frozenset(e.dests or ()), walks[p].latest[place]
    first: dict[tuple[int, Message], int] = {}
    for p, log in enumerate(logs):
        for place, e in enumerate(log):
            m = (e.origin, e.seq)
            if e.kind == "deliver":
                integrity += m not in sends or p not in dests[m] or (p, m) in first
                first.setdefault((p, m), place)
    correct = [p for p in range(len(logs)) if p not in crashed]

    def is_bound(p: int, m: Message, *, sending: bool) -> bool:
        if p not in correct or view[m] < 0:
            return p in correct
        own = [stay for stay in stays if stay.p == p and stay.number == view[m]]
        if sending and any(stay.end == "crash" for stay in own):
            return False
        return any(bound[id(stay)] or (sending and stay.end == "left") for stay in own)

    lost = 0
    for m in sends:
        receivers = [p for p in correct if p in dests[m] and is_bound(p, m, sending=False)]
        if is_bound(m[0], m, sending=True) or any((p, m) in first for p in receivers):
            lost += sum((p, m) not in first for p in receivers)
    past = happened_before(logs, sends)
    if past is None:
        return None
    fifo = causal = 0
    for (p, m), place in first.items():
        if m in sends and p in dests[m]:
            missing = {
                x for x in sends
                if p in dests[x] and first.get((p, x), place) >= place and x != m and view[x] == walks[p].latest[place]
            }  # fmt: skip
            fifo += any(x[0] == m[0] and sends[x] < sends[m] for x in missing)
            causal += bool(missing & past[m])
    return Orders(integrity, lost, fifo, causal)
