"""Removal of members that have crashed: fencing them, and agreeing on which of their messages count (flush).

Whether a member is gone is not decided here: only an agreed view removes one, and views come one at a time. Asked to go on
without it, a member takes nothing more from it (`fence`), and reports which of its messages it has that others may lack: those
that also went to others and are not known to be delivered everywhere, and those that wait behind a gap. The union of all
reports is then the same for all members that go on (`union`), so a message that reached one of them reaches all its
destinations, and one that reached none counts as not sent.

Calls that wait for a lost member fail at their callers, unless a replica of the object is left; instances that were called
through it end aborted, and requests that wait to be run on its behalf are not run; everything else goes on. Replicas run such
requests all the same, because some of them may have done so already.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from quire.protocols.node import Notice
from quire.protocols.objects.activity import Activity, Call
from quire.protocols.objects.declarations import Catalogue, Placed
from quire.protocols.objects.errors import HostLost
from quire.protocols.objects.notices import CalleeLost, Orphaned
from quire.protocols.objects.packets import AnyContent, Instance, Part, Release, Response

KEPT_AT_LEAST = 64
"""How many messages of each member are kept before it is checked which of them are still needed."""

Report = dict[int, tuple[AnyContent, ...]]
"""For each member to be removed, the messages that any member has from it, in the order in which they were sent."""


def union(reports: Iterable[Report]) -> Report:
    """Everything that was reported: for each member, its messages in the order in which it sent them."""
    found: dict[int, dict[int, AnyContent]] = {}
    for report in reports:
        for member, contents in report.items():
            # A member's clock is another one for each message, and the same for all whom a message goes to.
            found.setdefault(member, {}).update({content.clock: content for content in contents})
    return {member: tuple(contents[clock] for clock in sorted(contents)) for member, contents in found.items()}


class Departures:
    """`floor`: for each member, the clock up to which everything that it sent is delivered at all its destinations."""

    def __init__(self, me: int, catalogue: Catalogue, floor: Callable[[], Mapping[int, int]]) -> None:
        self.gone: set[int] = set()
        self.fenced: set[int] = set()
        """Nothing more is taken from these: they are gone, or will be with the next view."""
        self.lost: set[str] = set()
        """Objects that have no host any more that has their state."""
        self._me = me
        self._catalogue = catalogue
        self._floor = floor
        self._kept: dict[int, deque[AnyContent]] = {}
        self._enough = KEPT_AT_LEAST

    def destinations(self, content: AnyContent) -> frozenset[int]:
        """The members to which a message was sent."""
        if isinstance(content, Response):
            return frozenset((content.to.member,))
        if isinstance(content, Part):
            return frozenset()  # Who needs it is handed it again, by another.
        targets = (content.object,) if isinstance(content, Release) else content.targets
        return frozenset(member for target in targets for member in self._catalogue.find(target).members)

    def keep(self, source: int, content: AnyContent) -> None:
        """Keep a message from another member, because others may have to be told of it."""
        if self.destinations(content) <= {self._me, source}:
            return
        kept = self._kept.setdefault(source, deque())
        kept.append(content)
        if len(kept) > self._enough:
            self._forget(source)
            self._enough = max(KEPT_AT_LEAST, 2 * max(map(len, self._kept.values())))

    def _forget(self, source: int) -> None:
        kept, floor = self._kept.get(source, deque()), self._floor()[source]
        while kept and kept[0].clock <= floor:
            kept.popleft()

    def fence(self, member: int, held: Sequence[AnyContent]) -> tuple[AnyContent, ...]:
        """Accept nothing more from a member; returns what this member has of it. `held`: messages of it that wait for an
        earlier one."""
        self.fenced.add(member)
        self._forget(member)
        return tuple(sorted((*self._kept.get(member, ()), *held), key=lambda content: content.clock))

    def leave(self, member: int) -> None:
        self.fenced.add(member)
        self.gone.add(member)
        self._kept.pop(member, None)

    def lose(self, without_state: Collection[int]) -> None:
        """Objects whose state no member has any more are lost for good. `without_state`: present members that have none."""
        for name, placed in self._catalogue.objects.items():
            if all(member in self.gone or member in without_state for member in placed.members):
                self.lost.add(name)

    def admit(self, member: int) -> None:
        """Another process has taken the place of a lost member."""
        self.gone.discard(member)
        self.fenced.discard(member)

    # What becomes of calls

    def check_hosts(self, targets: Sequence[str]) -> None:
        """Raise HostLost if no member is left to run a call at one of these objects."""
        for target in filter(self.is_without_host, targets):
            raise HostLost(target, self._catalogue.find(target).members[0])

    def bereave(self, activity: Activity, responses: Iterable[Response]) -> tuple[list[Notice], list[Call]]:
        """Give up on lost callers and callees of this instance. Returns what to report, and the calls that continue without
        somebody. `responses`: responses to it that have arrived and are not delivered yet."""
        told: list[Notice] = []
        answered = {response.sender for response in responses}
        instance = activity.instance
        if not activity.orphan and instance.object and self.is_orphan(activity.chain, instance.object, lambda _: False):
            activity.orphan = True
            activity.queued.clear()
            told.append(Orphaned(instance))
            for call in activity.open.values():
                call.rest = ()  # It calls nobody any more.
        for call in list(activity.queued):
            if any(map(self.is_without_host, call.targets)):
                activity.queued.remove(call)
                told += self._lost(activity, call, [self._never_called(call, target) for target in call.targets])
        without = [call for call in activity.open.values() if activity.orphan and not call.waiting]
        for call in activity.open.values():
            lost = [callee for callee in sorted(call.waiting) if callee.member in self.gone and callee not in answered]
            call.waiting.difference_update(lost)
            lost += [self._never_called(call, target) for target in call.rest if self.is_without_host(target)]
            told += self._lost(activity, call, lost)
            without += [call] if lost and call not in without else []
        return told, without

    def _never_called(self, call: Call, target: str) -> Instance:
        return Instance(self._me, call.number, target, self._catalogue.find(target).members[0])

    def _lost(self, activity: Activity, call: Call, lost: Sequence[Instance]) -> list[CalleeLost]:
        if any(self.is_without_host(callee.object) for callee in lost):
            call.failed, call.rest = True, ()
        left = len(lost) + len(call.waiting) + len(call.rest)
        return [CalleeLost(activity.instance, call.call, callee, left - number) for number, callee in enumerate(lost, 1)]

    # Who is left

    def live(self, placed: Placed) -> tuple[int, ...]:
        """The remaining members of an object."""
        return tuple(member for member in placed.members if member not in self.gone) if self.gone else placed.members

    def is_without_host(self, target: str) -> bool:
        return target in self.lost or not self.live(self._catalogue.find(target))

    def is_orphan(self, callers: Iterable[Instance], target: str, is_of_before: Callable[[Instance], bool]) -> bool:
        """Whether a call has lost one of its callers, so that it must not continue. Replicas run it all the same: others may
        have run it already, and they call nobody. `is_of_before`: whether a caller's member was lost since, and came back."""
        if len(self._catalogue.find(target).members) > 1:
            return False
        return any(caller.member in self.gone or is_of_before(caller) for caller in callers)
