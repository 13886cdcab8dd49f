"""The metrics of a member of a fixed group."""

from __future__ import annotations

from collections.abc import Iterator

from quire.live.groups.driver import Driver
from quire.live.inbox import Inbox
from quire.live.metrics import Sample
from quire.live.network.mesh import Mesh
from quire.live.outbox import Outbox
from quire.live.settings import Settings
from quire.protocols.contract import Deliver


def samples(
    settings: Settings, driver: Driver, outbox: Outbox[tuple[int, ...]], inbox: Inbox[Deliver], mesh: Mesh
) -> Iterator[Sample]:
    base = {"group": settings.group, "member": str(settings.me)}
    yield Sample("quire_messages_sent_total", "Messages this member multicast.", "counter", driver.submitted, base)
    for origin, count in enumerate(driver.delivered):
        labels = base | {"origin": str(origin)}
        yield Sample("quire_messages_delivered_total", "Messages delivered, by origin.", "counter", count, labels)
    held = driver.protocol.held_back()
    yield Sample("quire_messages_held_back", "Messages not yet delivered here.", "gauge", held, base)
    yield Sample("quire_messages_in_outbox", "Messages accepted but not yet sent.", "gauge", len(outbox), base)
    yield Sample(
        "quire_messages_in_inbox", "Delivered messages that the application has not read.", "gauge", inbox.messages, base
    )
    yield from mesh.samples(base)
