"""`join`, the entry point to live groups. Their members may change, except with protocols whose groups are fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Unpack, cast, overload

from quire.live.dynamic.group import DynamicGroup
from quire.live.dynamic.joining import TIMEOUT_S, Delivery, read_dynamic_settings
from quire.live.dynamic.recording import record_member
from quire.live.dynamic.state import GivenState
from quire.live.groups.commands import AnyState
from quire.live.groups.group import Group
from quire.live.groups.joining import join_fixed
from quire.live.network_options import Network, NetworkOptions, takes_network_options
from quire.live.observing.observer import observer_of
from quire.live.settings import choose_protocol
from quire.model.errors import BadInput
from quire.views.core import FIXED_UNLESS_ASKED, IN_VIEWS

FixedProtocol = Literal["two-phase", "coordinator", "matrix", "hierarchy"]
"""Groups of hierarchy are fixed unless an option such as `cluster` asks for a changing one."""
DynamicProtocol = Literal["single-phase", "causal-vector", "fifo"]


class _ViewOptions(NetworkOptions, total=False):
    """The further options of members of changing groups."""

    options: Mapping[str, object] | None
    contact: Sequence[str]
    state: GivenState
    journal: str | Path | None
    delivery: Delivery | None
    weights: Mapping[str, int] | None
    rejoin: bool


class _DynamicOptions(_ViewOptions, total=False):
    """The same, where the protocol may be a hierarchy."""

    cluster: str


@overload
def join(
    group: str, *, me: int, members: Sequence[str], order: str, protocol: None = None, **more: Unpack[_DynamicOptions]
) -> DynamicGroup: ...


@overload
def join(
    group: str,
    *,
    me: int,
    members: Sequence[str],
    protocol: Literal["hierarchy"],
    cluster: str,
    order: None = None,
    **more: Unpack[_ViewOptions],
) -> DynamicGroup: ...


@overload
def join(
    group: str,
    *,
    me: int,
    members: Sequence[str],
    protocol: FixedProtocol,
    order: None = None,
    options: Mapping[str, object] | None = None,
    state: AnyState = None,
    **network: Unpack[NetworkOptions],
) -> Group: ...


@overload
def join(
    group: str,
    *,
    me: int,
    members: Sequence[str],
    protocol: DynamicProtocol,
    order: None = None,
    **more: Unpack[_DynamicOptions],
) -> DynamicGroup: ...


@overload
def join(
    group: str, *, me: int, members: Sequence[str], protocol: str, order: None = None, **more: Unpack[_DynamicOptions]
) -> Group | DynamicGroup: ...


@overload
def join(
    group: str,
    *,
    me: str,
    members: Mapping[str, str],
    order: str | None = None,
    protocol: str | None = None,
    **more: Unpack[_DynamicOptions],
) -> DynamicGroup: ...


@overload
def join(
    group: str,
    *,
    me: str,
    at: str,
    order: str | None = None,
    protocol: str | None = None,
    **more: Unpack[_DynamicOptions],
) -> DynamicGroup: ...


@takes_network_options
def join(
    group: str,
    *,
    me: int | str,
    members: Sequence[str] | Mapping[str, str] | None = None,
    at: str | None = None,
    contact: Sequence[str] = (),
    order: str | None = None,
    protocol: str | None = None,
    options: Mapping[str, object] | None = None,
    state: GivenState = None,
    journal: str | Path | None = None,
    delivery: Delivery | None = None,
    weights: Mapping[str, int] | None = None,
    rejoin: bool = True,
    cluster: str = "",
    **network: Unpack[NetworkOptions],
) -> Group | DynamicGroup:
    """One member of a live group. Use it in `async with`, which waits until this process has joined.

    Choose an `order` ("total", "causal", "fifo" …), or a `protocol` and its `options`. Beyond loopback, give a `secret` of at
    least 16 bytes or `certificates`, the same kind at every member, or set `insecure`. `listen` is where this member listens,
    if that differs from its address (NAT, containers). `on_event` is called with each Event. With `trace`, this member writes
    its part of the run's trace to that directory; `quire collect` combines the parts. With `observe`, `quire watch` and
    Prometheus can observe this member over HTTP while it runs (docs/watching.md). `transport="memory"` connects members within
    one event loop, for tests. Raises BadInput if the arguments are invalid.

    Members can change. Founders pass the same `members`: a mapping from names to addresses, or a list of addresses with this
    member's index as `me`, whose names are "0", "1" and so on. A later member gives its own address as `at`, and addresses of
    current members as `contact`. A majority continues when others are silent for `timeout_s` (default: 1 s); an excluded member
    rejoins automatically, unless `rejoin` is False. Entering the block raises NoQuorum if this process is not admitted within
    `join_s`, and BadInput as soon as it is certain that another member has different settings. `delivery` is "uniform"
    (whatever any member delivered, all members of the next view deliver; the default for a total order) or "fast". With
    `journal`, a directory for this member alone, a restarted process continues where it stopped. `state` is a
    `quire.Replicated`, several by name, or any object with `snapshot` and `restore`. `weights` gives members more than one
    vote. With hierarchy, `cluster` names the cluster that this member is in ("eu/berlin" is inside "eu"); `group.move` changes
    that. See docs/survival.md for what is promised.

    Groups of two-phase, coordinator and matrix are fixed, and those of hierarchy if none of `cluster`, `journal`, `delivery`,
    `weights`, `rejoin`, names of members, `at` and `contact` is given: they take a list of addresses, wait for all members, and
    end when one is lost. Entering the block raises MemberUnreachable if a member does not join within `join_s`. A member that
    is silent for `timeout_s` (default: 10 s) counts as lost: iterating then raises MemberUnreachable, whose `common` says how
    far the survivors are known to agree. Their `state` is a `quire.Replicated`, or several by name, and needs a total order.
    """
    name, _ = choose_protocol(order, protocol)
    wishes = journal, delivery, weights, at
    asked = any(wish is not None for wish in wishes) or bool(contact or cluster) or not rejoin
    by_name = not isinstance(me, int) or members is None or isinstance(members, Mapping)
    if name not in IN_VIEWS or (name in FIXED_UNLESS_ASKED and not (asked or by_name)):
        if asked:
            raise BadInput(
                f"groups of {name} are fixed, so that journal, delivery, weights, rejoin, cluster, at and contact are not for "
                f"them; choose one of {', '.join(IN_VIEWS)}"
            )
        if not isinstance(me, int) or members is None or isinstance(members, Mapping):
            raise BadInput(
                f"groups of {name} are fixed: give the members as a list, and me as a number, "
                f"or choose one of {', '.join(IN_VIEWS)}"
            )
        return join_fixed(group, me, members, name, options, cast(AnyState, state), Network(**network))
    given = Network(**{"timeout_s": TIMEOUT_S, **network})  # type: ignore[arg-type]
    settings = read_dynamic_settings(
        group,
        me,
        members=members,
        at=at,
        contact=contact,
        order=order,
        protocol=protocol,
        options=options,
        journal=journal,
        delivery=delivery,
        weights=weights,
        rejoin=rejoin,
        cluster=cluster,
        network=given,
    )
    observer = observer_of(given)
    return DynamicGroup(settings, state, given.on_event, record_member(settings, given.trace, observer), observer)
