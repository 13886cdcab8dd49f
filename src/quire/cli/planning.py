"""Builds the plan of a live group from a file and from the options of the command line, which take precedence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from quire.live.runs.fleet import free_addresses
from quire.live.runs.plan import Plan, read_plan
from quire.live.services.registry import SERVICES
from quire.model.errors import BadInput
from quire.model.faults import Fault, Full, check_faults, end_ms, members_of, parse_faults
from quire.protocols.registry import convert_options
from quire.simulation.config import parse_members, parse_options
from quire.views.core import FIXED_UNLESS_ASKED, IN_VIEWS

MEMBERS_MAX = 64
MESSAGES = 10_000
PROTOCOL = "single-phase"
RATE = 200.0
"""Messages per second of each sender, in a run with faults."""
AFTERWARDS_S = 2.0
"""How long the load lasts after the last fault is over."""
JOIN_S = 60.0
"""How long members that are all started here may take to join their group, or to rejoin it."""


def override(
    plan: Plan,
    *,
    protocol: str | None,
    option: Sequence[str] | None,
    senders: str | None,
    insecure: bool,
    clusters: str | None = None,
    **given: object,
) -> Plan:
    """The plan with the options of the command line, and single-phase if no protocol is given."""
    if protocol is not None:
        kept = plan.options if protocol == plan.protocol else {}
        plan = msgspec.structs.replace(plan, protocol=protocol, order=None, options=kept)
    elif plan.protocol is None and plan.order is None:
        plan = msgspec.structs.replace(plan, protocol=PROTOCOL)
    given["options"] = parse_options(option) if option else None
    given["senders"] = None if senders is None else parse_members(senders)
    given["insecure"] = insecure or None
    given["clusters"] = None if clusters is None else tuple(clusters.split(","))
    return msgspec.structs.replace(plan, **{name: value for name, value in given.items() if value is not None})


def make_plan(hosts: Path | None, members: int | None) -> Plan:
    """The plan of a group on this machine, or the one in a file of hosts."""
    if hosts is None:
        count = 3 if members is None else members
        if not 1 <= count <= MEMBERS_MAX:
            raise BadInput(f"members must be from 1 to {MEMBERS_MAX}, each a process on this machine, not {count}")
        return Plan(members=free_addresses(count))
    plan = read_plan(hosts)
    if members not in (None, len(plan.members)):
        raise BadInput(f"{hosts} has {len(plan.members)} members, not {members}; leave --members out")
    return plan


def complete(plan: Plan, *, grow: bool) -> Plan:
    """The plan with a load and, if it may `grow`, with all the processes that a service needs for its members."""
    service = SERVICES.get(plan.protocol or "")
    if plan.messages is None:
        plan = msgspec.structs.replace(plan, messages=MESSAGES if service is None else service.messages)
    if service is None or not grow:
        return plan
    options = convert_options(service.name, service.options, plan.options)
    needed, losable = service.processes(len(plan.members), options), service.losable(len(plan.members), options)
    if needed > MEMBERS_MAX:
        raise BadInput(f"this needs {needed} processes on this machine; the limit is {MEMBERS_MAX}")
    addresses = free_addresses(needed + len(losable))
    return msgspec.structs.replace(plan, members=addresses[:needed], register=addresses[needed:])


def losable_in(plan: Plan) -> range:
    """The processes of a service that it can survive losing; empty if it is not a service, or cannot survive any loss. The plan
    must not have other processes than members yet."""
    service = SERVICES.get(plan.protocol or "")
    if service is None:
        return range(0)
    return service.losable(len(plan.members), convert_options(service.name, service.options, plan.options))


def plan_faults(plan: Plan, text: str) -> tuple[Plan, tuple[Fault, ...]]:
    """The plan of a group that has faults, with a load that lasts for as long as they do; and the faults. Raises BadInput."""
    faults, losable = parse_faults(text), losable_in(plan)
    if losable:
        check_faults(faults, losable.stop)
        _check_losable(faults, losable, plan.protocol)
        return _lasting(plan, faults), faults
    if plan.protocol in FIXED_UNLESS_ASKED:
        plan = msgspec.structs.replace(plan, delivery=plan.delivery or "fast")
    if not plan.is_dynamic():
        name = plan.protocol
        others = f"{', '.join(IN_VIEWS)}, or sequencer with --backups"
        raise BadInput(f"groups of {name} are fixed and end with their first fault; choose one of {others}")
    check_faults(faults, len(plan.members))
    return _lasting(plan, faults), faults


def _lasting(plan: Plan, faults: Sequence[Fault]) -> Plan:
    """With a load that lasts for as long as the faults do."""
    span_s = end_ms(faults) / 1000 + AFTERWARDS_S
    rate = plan.rate or (RATE if plan.messages is None else plan.messages / span_s)
    return msgspec.structs.replace(plan, rate=rate, messages=plan.messages or max(1, round(rate * span_s)))


def _check_losable(faults: Sequence[Fault], losable: range, protocol: str | None) -> None:
    for fault in faults:
        if isinstance(fault, Full) or not set(members_of(fault)) <= set(losable):
            raise BadInput(
                f"'{fault}' is not possible: of {protocol}, only processes {losable[0]} to {losable[-1]} can be killed, "
                "stopped, cut off from each other and restarted"
            )
