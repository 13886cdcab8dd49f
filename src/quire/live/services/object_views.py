"""Who the hosts of a live group of objects are, as all of them agree: a group of their own, whose members change.

Its views come in one order, and its messages are delivered in one order in each of them. So whoever is missing in a view is
gone for everybody who goes on. Each of these then takes nothing more from it and tells the others, in the new view, what it has
of it; when all members of the view have, everybody knows the same of those who are gone, and goes on without them. Where
somebody else is missing before that, the next view begins it anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from struct import Struct

import msgspec

from quire.live.dynamic.events import View, ViewMessage
from quire.live.dynamic.group import DynamicGroup
from quire.live.dynamic.joining import read_dynamic_settings
from quire.live.network_options import Network
from quire.model.errors import BadInput, ProtocolViolation
from quire.protocols.objects.departures import Report, union
from quire.protocols.objects.packets import AnyContent

SLICE_BYTES = 1 << 19
"""A report may be long, and travels in pieces."""
_HEAD = Struct("<QQ?")
"""For which view it is, at which logical time it was told, and whether it is the last piece."""

_decoder = msgspec.msgpack.Decoder(dict[int, tuple[AnyContent, ...]])


def join_views(group: str, me: int, addresses: Sequence[str], network: Network) -> DynamicGroup:
    """The group in which hosts agree who they are, one at each of these addresses."""
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
        rejoin=False,
        network=quick,
    )
    return DynamicGroup(settings)


def check_views(addresses: Sequence[str], members: Sequence[str]) -> None:
    """Raise BadInput where these cannot be the addresses at which the members agree."""
    if isinstance(addresses, str) or len(addresses) != len(members):
        raise BadInput(f"views needs a list of {len(members)} addresses, one for each member")
    if set(addresses) & set(members):
        raise BadInput("views needs addresses of their own, other than those of the members")


class ObjectViews:
    """One host's part in it. `fence` is that of its node, `clock` its logical time; `install` is told what all agree on, and
    the latest time at which anybody told it."""

    def __init__(
        self,
        group: DynamicGroup,
        hosts: int,
        fence: Callable[[Sequence[int]], Report],
        clock: Callable[[], int],
        install: Callable[[Report, int], None],
    ) -> None:
        self._group = group
        self._fence = fence
        self._clock = clock
        self._install = install
        self._hosts = set(range(hosts))
        """Whoever is not gone, as this host knows it."""
        self._complete = False
        """Whether all were in one view."""
        self._view = View(-1, ())
        self._pieces: dict[str, bytearray] = {}
        self._reports: dict[str, Report] = {}
        self._latest = 0
        """The latest logical time of these."""
        self._telling: asyncio.Task[None] | None = None

    async def follow(self) -> None:
        """Until the group ends here; raises why, if the others went on without this host or no majority is left."""
        try:
            async for event in self._group.events():
                if isinstance(event, View):
                    self._changed(event)
                elif isinstance(event, ViewMessage):
                    self._heard(event)
        finally:
            if self._telling is not None:
                self._telling.cancel()

    def _changed(self, view: View) -> None:
        present = set(map(int, view.members))
        self._complete = self._complete or present == self._hosts
        self._view, self._pieces, self._reports, self._latest = view, {}, {}, 0
        missing = sorted(self._hosts - present)
        if self._complete and missing:
            report = msgspec.msgpack.encode(self._fence(missing))
            self._telling = asyncio.get_running_loop().create_task(self._tell(view.number, self._clock(), report))

    async def _tell(self, view: int, clock: int, report: bytes) -> None:
        pieces = [report[start : start + SLICE_BYTES] for start in range(0, len(report), SLICE_BYTES)]
        for number, piece in enumerate(pieces, 1):
            await self._group.multicast(_HEAD.pack(view, clock, number == len(pieces)) + piece)

    def _heard(self, message: ViewMessage) -> None:
        view, clock, last = _HEAD.unpack_from(message.payload)
        if view != self._view.number:
            return
        self._latest = max(self._latest, clock)
        pieces = self._pieces.setdefault(message.origin, bytearray())
        pieces += message.payload[_HEAD.size :]
        if not last:
            return
        try:
            self._reports[message.origin] = _decoder.decode(bytes(pieces))
        except msgspec.DecodeError as error:
            raise ProtocolViolation(int(message.origin), f"its report cannot be read: {error}") from error
        if self._reports.keys() >= set(self._view.members):
            agreed = union(self._reports.values())
            self._hosts -= agreed.keys()
            self._install(agreed, self._latest)
