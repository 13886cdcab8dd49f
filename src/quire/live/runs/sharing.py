"""One process of a service: it does its share and leaves its part of the trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from quire.live.errors import GroupFailed, NotDelivered
from quire.live.runs.parts import open_spool, write_part
from quire.live.runs.plan import Plan
from quire.live.runs.progress import PROGRESS_S, Ended, Progress, Tell, sentence
from quire.live.services.serving import Service, Share
from quire.live.spool import spill_regularly


async def take_share(
    service: Service, plan: Plan, me: int, parts: Path | None, tell: Tell, ready: Callable[[Callable[[], None]], None]
) -> Ended:
    """Join, do everything that is planned, and return when it is done everywhere."""
    settings = plan.settings(me)
    spool = None if parts is None else open_spool(parts, plan, settings)
    share = service.share(plan, settings, spool)
    ready(share.stop)
    helpers = [asyncio.ensure_future(_tell_progress(share, tell))]
    if spool is not None:
        helpers.append(asyncio.ensure_future(spill_regularly(spool)))
    try:
        await share.take_part()
    except (GroupFailed, NotDelivered) as error:
        if spool is not None:
            spool.discard()
        return Ended(share.sent, share.delivered, share.stopping, sentence(error))
    except BaseException:
        if spool is not None:
            spool.discard()
        raise
    finally:
        for helper in helpers:
            helper.cancel()
            with suppress(asyncio.CancelledError):
                await helper
    tell(Progress(share.sent, share.delivered))
    if spool is not None and parts is not None:
        write_part(parts, plan, settings, spool.recorder, share=share)
    return Ended(share.sent, share.delivered, share.stopping)


async def _tell_progress(share: Share, tell: Tell) -> None:
    while True:
        tell(Progress(share.sent, share.delivered))
        await asyncio.sleep(PROGRESS_S)
