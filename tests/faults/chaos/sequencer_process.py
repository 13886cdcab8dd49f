"""A sequencer with backups, or a client that sends, joins and leaves all the time; if it is evicted, it comes again."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import quire
from quire.protocols.sequencing.events import OPS
from quire.protocols.sequencing.notices import Changed, Delivered
from tests.faults.chaos.worker import Notes, run, say

RATE = 40.0
GROUPS = ("tea", "cake")


async def serve(given: dict[str, Any], network: dict[str, Any], over: asyncio.Event) -> None:
    server = quire.serve(given["sequencers"], given["me"], register=given["register"], **network)
    assert isinstance(server, quire.SurvivingServer)
    async with server:
        say(ready=True)
        whole = False
        while not over.is_set() and server.failure is None:
            if _is_whole(server) != whole:
                whole = not whole
                say(whole=whole)
            await asyncio.sleep(0.02)
        if server.failure is not None:
            say(wrong=repr(server.failure))


def _is_whole(server: quire.SurvivingServer) -> bool:
    """Whether all sequencers are there as far as this one knows, so that one of them may be lost."""
    view, succession = server._group.view, server._register.register().succession
    everybody = len(server.hub.settings.members)
    return view is not None and len(view.members) == len(succession.there) == everybody and server._all_live()


class Client:
    """From when it connects until it leaves, or is evicted. It notes what it is told, and what of its own was accepted."""

    def __init__(self, client: quire.Connected, notes: Notes, over: asyncio.Event, choose: random.Random) -> None:
        self._client = client
        self._notes = notes
        self._over = over
        self._choose = choose
        self._sent = 0
        client.on_delivered = self._take

    def _take(self, notice: Delivered | Changed) -> None:
        if isinstance(notice, Changed):
            self._notes("changed", notice.group, notice.seq, OPS[notice.kind], notice.who)
        else:
            messages = [(notice.run.origin, int(payload)) for payload in notice.run.payloads()]
            self._notes("delivered", notice.group, notice.seq, messages)

    async def work(self) -> None:
        self._notes("came", self._client.me)
        for group in GROUPS:
            await self._again(lambda group=group: self._client.create_group(group))
            await self._again(lambda group=group: self._client.join_group(group))
        say(ready=True)
        changing = asyncio.create_task(self._change())
        try:
            while not self._over.is_set():
                await self._send(self._choose.choice(GROUPS))
                await asyncio.sleep(1 / RATE)
            await changing
            await self._again(self._client.flushed)
            self._notes("flushed")
        finally:
            changing.cancel()

    async def _send(self, group: str) -> None:
        # What cannot be sent is not accepted; nothing here is so much that what was accepted could not be sent.
        with suppress(quire.UnitUnavailable):
            await self._client.multicast(group, b"%d" % self._sent)
            self._notes("accepted", group, self._sent)
            self._sent += 1

    async def _change(self) -> None:
        """Leave and come back now and then."""
        while not self._over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._choose.uniform(0.2, 3)):
                    await self._over.wait()
            group = self._choose.choice(GROUPS)
            await self._again(lambda group=group: self._client.leave_group(group))
            await self._again(lambda group=group: self._client.join_group(group))

    async def _again(self, call: Any) -> None:
        """Until the service answers. A call that was not answered in time may have had its effect, or have it yet."""
        while True:
            try:
                await call()
                return
            except quire.UnitUnavailable:
                pass
            except quire.Busy:
                await asyncio.sleep(0.02)
            except (quire.AlreadyMember, quire.NotMember):
                return


async def visit(given: dict[str, Any], network: dict[str, Any], over: asyncio.Event) -> None:
    choose = random.Random(given["start"])
    for time in count():
        notes = Notes(Path(given["notes"], f"{given['start']}-{time}"))
        client = quire.connect(given["sequencers"], trace=given["trace"], listen=given["listen"], **network)
        try:
            async with client:
                await Client(client, notes, over, choose).work()
            notes("left")
            return
        except quire.Evicted as error:
            say(evicted=str(error))
        except quire.UnitUnavailable:
            # It could not leave in time.
            return


async def main(given: dict[str, Any], over: asyncio.Event) -> None:
    network = {
        "backups": given["backups"], "options": {"tick_ms": 20, **given["options"]}, "timeout_s": given["timeout_s"],
        "join_s": 600, "insecure": True,
    }  # fmt: skip
    await (visit if given["me"] is None else serve)(given, network, over)


if __name__ == "__main__":
    run(main)
