"""The status of a member of a fixed group, for observers."""

from __future__ import annotations

from collections.abc import Sequence

from quire.live import held
from quire.live.errors import GroupFailed
from quire.live.groups.driver import Driver
from quire.live.inbox import Inbox
from quire.live.network.mesh import Mesh
from quire.live.network.peers import links
from quire.live.observing.status import Condition, Queue, Status, first_held, shown
from quire.live.outbox import Outbox
from quire.live.settings import Settings
from quire.protocols.contract import Deliver


def status(
    settings: Settings,
    driver: Driver,
    outbox: Outbox[tuple[int, ...]],
    inbox: Inbox[Deliver],
    mesh: Mesh,
    waiting: Sequence[held.Held],
    failure: GroupFailed | None,
) -> Status:
    condition, why = _condition(inbox, mesh, failure)
    return Status(
        kind="group",
        group=settings.group,
        me=str(settings.me),
        protocol=settings.protocol,
        condition=condition,
        why=why,
        members=tuple(map(str, range(len(settings.members)))),
        sent=driver.submitted,
        unsettled=len(outbox) + driver.submitted - driver.delivered[settings.me],
        delivered={str(origin): count for origin, count in enumerate(driver.delivered)},
        queues={
            "inbox": Queue(inbox.messages, inbox.bytes, settings.inbox_messages_max),
            "outbox": Queue(len(outbox)),
            "held back": Queue(driver.protocol.held_back()),
        },
        links=links(mesh.peers.values()),
        waiting=first_held([*map(shown, waiting)]),
        waiting_in_all=len(waiting),
    )


def _condition(inbox: Inbox[Deliver], mesh: Mesh, failure: GroupFailed | None) -> tuple[Condition, str]:
    if failure is not None:
        return "failed", str(failure)
    if not mesh.has_started():
        return "joining", f"waiting for {mesh.who_is_missing()}"
    return ("running", "") if inbox.unread_s() is None else ("unread", inbox.why())
