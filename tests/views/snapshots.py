"""A process as a value: the state of its member, what it has done, and what must hold of that, whatever the schedule."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from quire.views.core import GroupSettings
from quire.views.effects import Deliver, Install
from quire.views.member import Member
from quire.views.packets import Accept, Data, Fill, GroupPacket, Welcome
from quire.views.view import View

Operation = tuple[str, int]
Cause = tuple[tuple[int, int, int], tuple[int, ...]]
"""A run by its epoch, its member and its first message, and how much of each member comes before it."""


@dataclass(frozen=True)
class Snapshot:
    state: bytes
    """Of the member; empty once it has crashed."""
    identity: Hashable
    """Equal for two members if their states are."""
    name: str
    incarnation: int
    submissions: int
    """How often it may still submit, and start a ballot, by itself."""
    ballots: int
    out: bool = False
    """Whether it is in no view, or not any more."""
    sent: int = 0
    """How many messages it has sent in its view."""
    log: tuple[Operation, ...] = ()
    counts: tuple[int, ...] = ()
    """How many messages of each member it has delivered in its view."""
    views: tuple[tuple[View, tuple[Operation, ...]], ...] = ()
    """The views that it has installed, and what it had delivered when each began."""
    causes: frozenset[Cause] = frozenset()
    """Of the runs that it has seen in its view."""

    def key(self) -> Hashable:
        views = tuple((view.epoch, view.members, log) for view, log in self.views)
        done = (self.out, self.sent, self.log, self.counts, views, self.causes)
        return self.identity, self.name, self.incarnation, self.submissions, self.ballots, done

    def member(self) -> Member:
        return pickle.loads(self.state)  # type: ignore[no-any-return]

    def of(self, member: Member) -> Snapshot:
        """With this state of the member."""
        return replace(self, state=pickle.dumps(member), identity=_frozen(member, {}), incarnation=member.core.me.incarnation)

    def crashed(self) -> Snapshot:
        return replace(self, state=b"", identity=None, submissions=0, ballots=0)

    def received(self, packet: GroupPacket) -> Snapshot:
        """It knows of these causes now."""
        runs: tuple[Data, ...] = ()
        match packet:
            case Data():
                runs = (packet,)
            case Accept() | Fill():
                runs = packet.runs
            case Welcome():
                runs = packet.previous.runs if packet.previous is not None else ()
            case _:
                pass
        new = frozenset(((data.epoch, data.run.origin, data.run.first), data.causes) for data in runs)
        return replace(self, causes=self.causes | new)

    def delivered(self, effect: Deliver) -> Snapshot:
        entry, log, counts = effect.entry, self.log, self.counts
        run = entry.run
        if not self.out:
            assert self.views[-1][0].epoch == entry.epoch, f"{self.name} delivers what belongs to another view"
            assert counts[entry.rank] == run.first, f"{self.name} delivers out of a sender's order"
            causes = dict(self.causes).get((entry.epoch, entry.rank, run.first), ())
            assert all(map(int.__ge__, counts, causes)), f"{self.name} delivers an effect before its cause"
            counts = (*counts[: entry.rank], run.end, *counts[entry.rank + 1 :])
        last = max((number for session, number in log if session == entry.session), default=0)
        assert entry.number == last + 1, f"{self.name} delivers operation {entry.number} of {entry.session} after {last}"
        return replace(self, log=(*log, *((entry.session, entry.number + step) for step in range(run.count))), counts=counts)

    def installed(self, effect: Install) -> Snapshot:
        view = effect.view
        if not effect.joined:
            last = self.views[-1][0]
            assert last.epoch == view.epoch - 1, f"{self.name} goes from view {last.epoch} to {view.epoch}"
            rank = last.rank(self.name)
            assert rank is not None
            assert self.counts[rank] == self.sent, f"{self.name} goes on without something that it sent"
        counts = (0,) * len(view.members)
        return replace(self, out=False, views=(*self.views, (view, self.log)), sent=0, counts=counts, causes=frozenset())

    def newest(self) -> View | None:
        return self.views[-1][0] if self.views else None


def check_pair(settings: GroupSettings, one: Snapshot, other: Snapshot) -> None:
    """What must hold for any two processes, whether they are still there or not."""
    theirs = {view.epoch: (view, log) for view, log in other.views}
    for view, log in one.views:
        if view.epoch in theirs:
            known, their_log = theirs[view.epoch]
            assert known == view, f"two views of one epoch: {known} and {view}"
            same = log == their_log if settings.total else sorted(log) == sorted(their_log)
            assert same, f"view {view.epoch} begins with {log} and with {their_log}"
    if settings.uniform:
        for mine, yours in ((one, other), (other, one)):
            _check_uniform(mine, yours)
        if settings.total:
            short, long = sorted((one.log, other.log), key=len)
            assert long[: len(short)] == short, f"{short} and {long} are no parts of one order"


def _check_uniform(one: Snapshot, other: Snapshot) -> None:
    """Whatever the one has delivered in a view, the other has when it begins a later one."""
    last = one.newest()
    for view, log in other.views:
        if last is not None and not one.out and view.epoch > last.epoch:
            assert set(one.log) <= set(log), f"view {view.epoch} begins without something that was delivered before"


def _frozen(thing: Any, seen: dict[int, int]) -> Hashable:
    """Objects that are part of each other are told by the order in which they are met."""
    if isinstance(thing, int | str | bytes | float | type(None)):
        return thing
    if isinstance(thing, msgspec.Struct):
        return msgspec.msgpack.encode(thing)
    if isinstance(thing, dict):
        return tuple((key, _frozen(value, seen)) for key, value in thing.items())
    if isinstance(thing, set | frozenset):
        return frozenset(thing)
    if isinstance(thing, Callable):  # type: ignore[arg-type]
        return None
    if hasattr(thing, "__dict__"):
        if id(thing) in seen:
            return seen[id(thing)]
        seen[id(thing)] = len(seen)
        return tuple(_frozen(value, seen) for _, value in sorted(vars(thing).items()))
    return tuple(_frozen(item, seen) for item in thing)
