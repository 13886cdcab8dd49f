"""Membership of the hosts of a live object group: they agree on it in a changing group of their own.

The views of that group come in one order, and its messages are delivered in one order in each view. So a host that is missing
in a view is gone for all that go on. Each of these then takes nothing more from it (fencing), and reports to the others, in
the new view, what it has received from it. When all members of the view have reported, all know the same of the hosts that are
gone, and go on without them. If another host goes missing before that, the next view starts this over.
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
"""A report may be long, and is sent in pieces of this size."""
_HEAD = Struct("<QQ?")
"""The view of the report, the logical time when it was made, and whether this is the last piece."""

_decoder = msgspec.msgpack.Decoder(dict[int, tuple[AnyContent, ...]])


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
        rejoin=False,
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
    """One host's part in it. `fence` is that of its node, `clock` its logical time; `install` is called with what all agree on,
    and with the latest logical time of the reports."""

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
        """The hosts that are not gone, as far as this host knows."""
        self._complete = False
        """Whether all hosts were ever in one view."""
        self._view = View(-1, ())
        self._pieces: dict[str, bytearray] = {}
        self._reports: dict[str, Report] = {}
        self._latest = 0
        """The latest logical time of the reports."""
        self._telling: asyncio.Task[None] | None = None

    async def follow(self) -> None:
        """Run until the group ends here; raises an error if the others went on without this host, or no majority is left."""
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
