"""Membership of the hosts of a live object group: they agree on it in a changing group of their own.

The views of that group come in one order, and its messages are delivered in one order in each view. So a host that is missing
in a view is gone for all that go on, and so is one in whose place another process is; each process says in every view which one
it is. Those who go on then take nothing more from whoever is gone (fencing), and report to the others, in the new view, what
they have received from it. When all have reported, all know the same of the hosts that are gone, and go on without them. Then
hosts that come back are admitted: all say how they stand. If the view changes before that is done, the next view starts it
over. When a host that comes back has the states of its objects, it says so in the same order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Protocol as Interface
from typing import TypeVar

import msgspec

from quire.live.dynamic.events import Excluded, MemberExcluded, View, ViewMessage
from quire.live.dynamic.group import DynamicGroup
from quire.live.dynamic.joining import read_dynamic_settings
from quire.live.network_options import Network
from quire.model.errors import BadInput, ProtocolViolation
from quire.protocols.objects.departures import Report, union
from quire.protocols.objects.packets import AnyContent
from quire.protocols.objects.returns import Said

SLICE_BYTES = 1 << 19
"""A report may be long, and is sent in pieces of this size."""
_HEAD = Struct("<QQ?")
"""The view in which it was sent, the logical time then, and whether this is the last piece."""


class Presence(msgspec.Struct, frozen=True, tag="here"):
    """Which process a host is: 0 at the start, and of one that comes back the number of its first view."""

    life: int
    settled: bool
    """Whether all know how it stood when it came."""
    incarnation: int
    """Of its connections."""


class Flushed(msgspec.Struct, frozen=True, tag="flushed"):
    """What a host has received from those that are gone."""

    report: dict[int, tuple[AnyContent, ...]]


class Standing(msgspec.Struct, frozen=True, tag="stands"):
    """How a host stands when others come back."""

    said: Said


class HasAll(msgspec.Struct, frozen=True, tag="has all"):
    """A host that came back has the states of its objects. A host that joins may be told again what an earlier process said."""

    life: int


Word = Presence | Flushed | Standing | HasAll
Kind = TypeVar("Kind", Presence, Flushed, Standing)
_decoder: msgspec.msgpack.Decoder[Word] = msgspec.msgpack.Decoder(Word)


class Member(Interface):
    """What changes with the views. Logical times are those of the trace, the latest that any host had."""

    @property
    def incarnation(self) -> int: ...
    def incarnations(self) -> Mapping[int, int]: ...
    def logical_time(self) -> int: ...
    def fence(self, hosts: Sequence[int]) -> Report: ...
    def go_on_without(self, agreed: Report, incarnations: Mapping[int, int], lamport: int) -> None: ...
    def begin_life(self, life: int, others: Mapping[int, int]) -> None: ...
    def admit(self, hosts: Mapping[int, int]) -> None: ...
    def stands(self) -> Said: ...
    def admitted(self, said: Mapping[int, Said], lamport: int) -> None: ...
    def caught_up(self, host: int, lamport: int) -> None: ...


def join_views(group: str, me: int, addresses: Sequence[str], network: Network) -> DynamicGroup:
    """The group in which hosts agree on their membership, with one member at each of these addresses."""
    names = {str(number): address for number, address in enumerate(addresses)}
    quick = msgspec.structs.replace(network, listen=None, trace=None, on_event=None, observe=None, observe_token=None)
    settings = read_dynamic_settings(
        group,
        str(me),
        members=names,
        at=None,
        contact=(),
        order="total",
        protocol=None,
        options=None,
        journal=None,
        delivery="uniform",
        weights=None,
        rejoin=True,
        network=quick,
    )
    return DynamicGroup(settings)


def check_views(addresses: Sequence[str], members: Sequence[str]) -> None:
    """Raise BadInput where these cannot be the addresses of that group."""
    if isinstance(addresses, str) or len(addresses) != len(members):
        raise BadInput(f"views needs a list of {len(members)} addresses, one for each member")
    if set(addresses) & set(members):
        raise BadInput("views needs addresses of their own, other than those of the members")


class ObjectViews:
    """One host's part in it; `returns`: whether it takes the place of a process that was lost."""

    def __init__(self, group: DynamicGroup, hosts: int, member: Member, *, returns: bool) -> None:
        self._group = group
        self._member = member
        self._everybody = set(range(hosts))
        self._life: int | None = None if returns else 0
        self._settled = not returns
        self._lives: dict[int, int] = {}
        """The hosts that are there, as far as this one has gone along with the views, and which processes they are."""
        self._incarnations: dict[int, int] = {}
        self._gone: set[int] = set()
        """The hosts that go with this view."""
        self._view = View(-1, ())
        self._latest = 0
        """The latest logical time that was heard."""
        self._pieces: dict[str, bytearray] = {}
        self._words: dict[type[Word], dict[int, Word]] = {}
        """What each host has said in this view, of each kind."""
        self._unsent: deque[tuple[int, int, bytes]] = deque()
        self._telling: asyncio.Task[None] | None = None

    async def follow(self) -> None:
        """Until the group ends. Raises what ends it."""
        try:
            async for event in self._group.events():
                if isinstance(event, View):
                    self._changed(event)
                elif isinstance(event, ViewMessage):
                    self._heard(event)
                elif isinstance(event, Excluded) and self._view.number >= 0:
                    # Only another process could come back: this one has a state that the others know nothing of.
                    raise MemberExcluded(event.view)
        finally:
            if self._telling is not None:
                self._telling.cancel()

    def has_all(self) -> None:
        """This host came back, and has the states of all its objects."""
        assert self._life is not None
        self._tell(HasAll(self._life))

    # Saying and hearing.

    def _tell(self, word: Word) -> None:
        self._unsent.append((self._view.number, self._member.logical_time(), msgspec.msgpack.encode(word)))
        if self._telling is None or self._telling.done():
            self._telling = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        while self._unsent:
            view, lamport, data = self._unsent.popleft()
            pieces = [data[start : start + SLICE_BYTES] for start in range(0, len(data), SLICE_BYTES)]
            for number, piece in enumerate(pieces, 1):
                await self._group.multicast(_HEAD.pack(view, lamport, number == len(pieces)) + piece)

    def _heard(self, message: ViewMessage) -> None:
        view, lamport, last = _HEAD.unpack_from(message.payload)
        host, pieces = int(message.origin), self._pieces.setdefault(message.origin, bytearray())
        pieces += message.payload[_HEAD.size :]
        if not last:
            return
        del self._pieces[message.origin]
        try:
            word = _decoder.decode(pieces)
        except msgspec.DecodeError as error:
            raise ProtocolViolation(host, f"its report cannot be read: {error}") from error
        self._latest = max(self._latest, lamport)
        if isinstance(word, HasAll):
            here = self._said(Presence).get(host)
            if word.life == self._lives.get(host, None if here is None else here.life):
                self._member.caught_up(host, self._latest)
        elif view == self._view.number:
            self._words.setdefault(type(word), {})[host] = word
            self._go_on(type(word))

    def _said(self, kind: type[Kind]) -> dict[int, Kind]:
        return self._words.get(kind, {})  # type: ignore[return-value]

    # Views.

    def _changed(self, view: View) -> None:
        self._view, self._words, self._gone = view, {}, set()
        gone = [name for name in self._pieces if name not in view.members]
        for name in gone:
            del self._pieces[name]
        if not self._lives and self._life == 0 and set(map(int, view.members)) == self._everybody:
            # The group begins when all are there.
            self._lives, self._incarnations = dict.fromkeys(self._everybody, 0), dict(self._member.incarnations())
        self._life = view.number if self._life is None else self._life
        self._tell(Presence(self._life, self._settled, self._member.incarnation))

    def _go_on(self, heard: type[Word]) -> None:
        """All that are concerned may have said what they have to say of this kind."""
        present = set(map(int, self._view.members))
        if heard is Presence and self._said(Presence).keys() >= present:
            self._know_who_is_there()
        elif heard is Flushed and self._gone and self._said(Flushed).keys() >= self._lives.keys() - self._gone:
            told = self._said(Flushed)
            agreed = union(told[host].report for host in sorted(told.keys() & self._lives.keys() - self._gone))
            self._member.go_on_without({host: agreed[host] for host in sorted(self._gone)}, self._incarnations, self._latest)
            self._lives = {host: life for host, life in self._lives.items() if host not in self._gone}
            self._gone = set()
            self._admit()
        elif heard is Standing and self._said(Standing).keys() >= present:
            self._settled = True
            self._member.admitted({host: word.said for host, word in self._said(Standing).items()}, self._latest)

    def _know_who_is_there(self) -> None:
        lives = {host: word.life for host, word in self._said(Presence).items()}
        if not self._lives and self._life == 0:
            return
        if not self._lives:
            assert self._life is not None
            others = {host: life for host, life in lives.items() if host != int(self._group.me)}
            self._member.begin_life(self._life, others)
            self._lives = lives
            fellows = {host: life for host, life in others.items() if not self._said(Presence)[host].settled}
            self._member.admit(fellows)
        self._gone = {host for host, life in self._lives.items() if lives.get(host) != life}
        if self._gone:
            self._tell(Flushed(self._member.fence(sorted(self._gone))))
        else:
            self._admit()

    def _admit(self) -> None:
        """Whoever comes back is there from now on, and all say how they stand until those who came know it."""
        words = self._said(Presence)
        new = {host: word.life for host, word in words.items() if host not in self._lives}
        self._member.admit(new)
        self._lives |= new
        self._incarnations = {host: word.incarnation for host, word in words.items()}
        if not all(word.settled for word in words.values()):
            self._tell(Standing(self._member.stands()))
