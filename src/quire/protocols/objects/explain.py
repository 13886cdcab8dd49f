"""Explains, in sentences, why two messages are ordered, or that they are not."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from quire.model.errors import BadInput
from quire.protocols.objects.declarations import Catalogue
from quire.protocols.objects.packets import AnyContent, Instance, Part, PastOnWire, Release, Request, Response, Stamp
from quire.protocols.objects.vectors import precedes


class Head(msgspec.Struct, frozen=True):
    """The parts of a message that determine its order."""

    stamp: Stamp
    number: int
    sender: Instance
    sends: int
    past: PastOnWire
    op: str
    targets: tuple[str, ...]
    to: Instance | None

    @classmethod
    def of(cls, message: Request | Response) -> Head:
        stamp = Stamp(message.clock, message.sender.member)
        if isinstance(message, Request):
            return cls(stamp, message.number, message.sender, message.sends, message.past, message.op, message.targets, None)
        return cls(stamp, message.number, message.sender, message.sends, message.past, "", (), message.to)

    def __str__(self) -> str:
        kind = f"request {self.op}" if self.to is None else "response"
        return f"{kind} {self.stamp.member}:{self.number}"


class Heads:
    """The heads of the latest messages that a member sent or received."""

    def __init__(self, most: int) -> None:
        self.found: OrderedDict[tuple[int, int], Head] = OrderedDict()
        self._most = most

    def remember(self, message: AnyContent) -> None:
        if self._most and not isinstance(message, Release | Part):
            self.found[message.sender.member, message.number] = Head.of(message)
            if len(self.found) > self._most:
                self.found.popitem(last=False)

    def explain(self, first: tuple[int, int], second: tuple[int, int], catalogue: Catalogue) -> Explanation:
        for each in (first, second):
            if each not in self.found:
                raise BadInput(f"there is no record of the message {each[0]}:{each[1]} here")
        return explain(self.found[first], self.found[second], catalogue)


class Explanation(msgspec.Struct, frozen=True):
    """`first` is delivered before `second` at their common destinations, and `where` says; None: they are not ordered."""

    first: tuple[int, int] | None
    second: tuple[int, int] | None
    where: tuple[str, ...]
    significant: bool
    """Whether the first significantly precedes the second, as far as their vectors still say."""
    because: str


def explain(one: Head, other: Head, catalogue: Catalogue) -> Explanation:
    first, second = (one, other) if one.stamp < other.stamp else (other, one)
    significant = precedes(first.sender, first.sends, dict(second.past))
    past = f"{first} significantly precedes {second}" if significant else "neither significantly precedes the other"
    ids = (first.stamp.member, first.number), (second.stamp.member, second.number)
    if first.to is None and second.to is None:
        common = [target for target in first.targets if target in second.targets]
        where = tuple(name for name in common if catalogue.find(name).type.conflict(first.op, second.op))
        if where:
            stamps = f"{tuple(first.stamp)} is the older stamp"
            return Explanation(
                *ids, where, significant, f"{first.op} and {second.op} conflict at {', '.join(where)}; {stamps}; {past}"
            )
        why = (
            f"{first.op} and {second.op} do not conflict at {', '.join(common)}" if common else "they have no object in common"
        )
        return Explanation(None, None, (), significant, f"not ordered: {why}; {past}")
    if first.to is not None and first.to == second.to and significant:
        return Explanation(*ids, (first.to.object,), True, f"both answer {first.to}, and {past}")
    if first.to is not None and first.to == second.to:
        return Explanation(None, None, (), False, f"not ordered: both answer {first.to}, but {past}")
    return Explanation(
        None, None, (), significant, f"not ordered: they do not go to one instance, and are not both requests; {past}"
    )
