"""One process of a service in a run: plays its role, and writes its part of the trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from quire.live.errors import GroupFailed, NotDelivered
from quire.live.observing.observer import observer_of
from quire.live.recording import Recording
from quire.live.runs.plan import Plan
from quire.live.runs.progress import PROGRESS_S, Ended, Progress, Running, Tell, sentence
from quire.live.services.recorded import record_node
from quire.live.services.service import Role, Service
from quire.protocols.sequencing.failover.configurations import Configuration


async def take_part_in(
    service: Service, plan: Plan, me: int, parts: Path | None, tell: Tell, ready: Callable[[Callable[[], None]], None]
) -> Ended:
    """Join, do everything that is planned, and return when it is done everywhere."""
    settings = plan.settings(me)
    observer = observer_of(plan.network(me))
    number = service.process(settings)
    recording = None
    if number is not None:
        recording = record_node(service.identify(settings, plan.described()), number, parts, observer)
    role = service.role(plan, settings, recording, observer)
    if recording is not None:
        recording.details = role.details
    role.on_running = lambda found: tell(_running(found))
    ready(role.stop)
    telling = asyncio.ensure_future(_tell_progress(role, recording, tell))
    try:
        await role.take_part()
    except (GroupFailed, NotDelivered) as error:
        return Ended(role.sent, role.delivered, role.stopping, sentence(error))
    finally:
        telling.cancel()
        with suppress(asyncio.CancelledError):
            await telling
    tell(Progress(role.sent, role.delivered, _unrecorded(recording)))
    return Ended(role.sent, role.delivered, role.stopping, _unrecorded(recording))


def _running(found: Configuration) -> Running:
    return Running(found.unit, found.epoch, found.primary.address, tuple(backup.address for backup in found.backups))


def _unrecorded(recording: Recording | None) -> str:
    return "" if recording is None else recording.failure


async def _tell_progress(role: Role, recording: Recording | None, tell: Tell) -> None:
    while True:
        tell(Progress(role.sent, role.delivered, _unrecorded(recording)))
        await asyncio.sleep(PROGRESS_S)
