"""The way into a live group. Members change while it goes on, except with the protocols whose groups are fixed."""

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
from quire.views.core import IN_VIEWS

FixedProtocol = Literal["two-phase", "coordinator", "matrix", "hierarchy"]
ChangingProtocol = Literal["single-phase", "causal-vector", "fifo"]


class _ChangingOptions(NetworkOptions, total=False):
    """What a member of a group that changes may be given besides."""

    options: Mapping[str, object] | None
    contact: Sequence[str]
    state: GivenState
    journal: str | Path | None
    delivery: Delivery | None
    weights: Mapping[str, int] | None
    rejoin: bool


@overload
def join(
    group: str, *, me: int, members: Sequence[str], order: str, protocol: None = None, **more: Unpack[_ChangingOptions]
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
    protocol: ChangingProtocol,
    order: None = None,
    **more: Unpack[_ChangingOptions],
) -> DynamicGroup: ...


@overload
def join(
    group: str, *, me: int, members: Sequence[str], protocol: str, order: None = None, **more: Unpack[_ChangingOptions]
) -> Group | DynamicGroup: ...


@overload
def join(
    group: str,
    *,
    me: str,
    members: Mapping[str, str],
    order: str | None = None,
    protocol: str | None = None,
    **more: Unpack[_ChangingOptions],
) -> DynamicGroup: ...


@overload
def join(
    group: str,
    *,
    me: str,
    at: str,
    order: str | None = None,
    protocol: str | None = None,
    **more: Unpack[_ChangingOptions],
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
    **network: Unpack[NetworkOptions],
) -> Group | DynamicGroup:
    """A member of a live group, to be used in `async with`, which waits until it is one.

    Choose an `order` ("total", "causal", "fifo" …), or a `protocol` and its `options`. Beyond loopback, give a `secret` of at
    least 16 bytes or `certificates`, the same kind everywhere, or set `insecure`. `listen` is where this member listens, if
    others reach it elsewhere: behind a gateway, or in a container. `on_event` is called with each Event. With `trace`, this
    member writes its part of the run's trace to that directory; `quire collect` makes a run of the parts of all. With
    `observe`, this member can be looked at over HTTP while it runs, by `quire watch` or Prometheus (docs/watching.md).
    `transport="memory"` connects members within one event loop, for tests. Raises BadInput if the arguments make no sense.

    Founders have the same `members`: a list of addresses, with the place there as `me`, or names with their addresses. In a
    list the names are "0", "1" and so on. Anybody else gives its own address as `at`, and as `contact` addresses of some who
    are in the group. A majority goes on when others are silent for `timeout_s` (1 s unless given); whoever was left out comes
    back by itself, unless `rejoin` is False. Entering the block raises NoQuorum if this process is no member within `join_s`,
    and BadInput as soon as it is certain that another has other settings. `delivery` is "uniform" (what anybody delivered,
    everybody in the next view has; the default for a total order) or "fast". With `journal`, a directory of this member's own,
    a restarted process goes on where it was. `state` is a `quire.Replicated`, several by their names, or any object with
    `snapshot` and `restore`. `weights` count members more than once. docs/survival.md says what is promised.

    Groups of two-phase, coordinator, matrix and hierarchy are fixed: they take a list of addresses, wait for all members, and
    end when one is lost. A member that is silent for `timeout_s` (10 s unless given) counts as lost: iterating then raises
    MemberUnreachable, whose `common` says how far the survivors are known to agree. docs/live.md says more.
    """
    name, _ = choose_protocol(order, protocol)
    if name not in IN_VIEWS:
        if journal is not None or delivery is not None or weights is not None or not rejoin or at is not None or contact:
            raise BadInput(
                f"groups of {name} are fixed, so that journal, delivery, weights, rejoin, at and contact are not for them; "
                f"choose one of {', '.join(IN_VIEWS)}"
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
        network=given,
    )
    observer = observer_of(given)
    return DynamicGroup(settings, state, given.on_event, record_member(settings, given.trace, observer), observer)
