"""A sequencer that survives, or a client that sends, joins and leaves all the time; if it is evicted, it comes again, and where
a group is lost it goes on with another."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import quire
from quire.live.services.nodes import Host
from quire.protocols.node import Notice
from quire.protocols.sequencing.events import OPS
from quire.protocols.sequencing.notices import Changed, Delivered, Skipped
from tests.faults.chaos.worker import Notes, run, say

RATE = 40.0
GROUPS = ("tea", "cake")


async def serve(given: dict[str, Any], network: dict[str, Any], over: asyncio.Event) -> None:
    server = quire.serve(given["sequencers"], given["me"], register=given["register"], journal=given["journal"], **network)
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

    def __init__(
        self, client: quire.Connected, notes: Notes, over: asyncio.Event, choose: random.Random, *, stays: bool
    ) -> None:
        """`stays`: whether it is always in all groups, so that these are never without members."""
        self._client = client
        self._notes = notes
        self._over = over
        self._choose = choose
        self._stays = stays
        self._sent = 0
        self._names = {group: group for group in GROUPS}
        """What each group is called since it was lost last."""
        self._changing = asyncio.Lock()
        client.on_delivered = self._take
        self._tell, client.on_notice = client.on_notice, self._hear  # type: ignore[method-assign]

    def _hear(self, host: Host, notice: Notice) -> None:
        if isinstance(notice, Skipped):
            self._notes("blank", notice.group, notice.first, notice.last)
        self._tell(host, notice)

    def _take(self, notice: Delivered | Changed) -> None:
        if isinstance(notice, Changed):
            self._notes("changed", notice.group, notice.seq, OPS[notice.kind], notice.who)
        else:
            messages = [(notice.run.origin, int(payload)) for payload in notice.run.payloads()]
            self._notes("delivered", notice.group, notice.seq, messages)

    async def work(self) -> None:
        self._notes("came", self._client.me)
        for group in GROUPS:
            await self._enter(group)
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

    async def _enter(self, group: str) -> None:
        """Be in the group, under its present name."""
        async with self._changing:
            while True:
                name = self._names[group]
                try:
                    await self._again(lambda name=name: self._client.create_group(name))
                    await self._again(lambda name=name: self._client.join_group(name))
                except (quire.GroupLost, quire.NoSuchGroup):
                    await self._is_lost(group, name)
                else:
                    return

    async def _is_lost(self, group: str, name: str) -> None:
        """A group of this name is not to be had. All agree on the next name."""
        try:
            await self._again(lambda: self._client.find_group(name))
        except quire.GroupLost:
            self._notes("lost", name)
            say(lost=name)
            self._names[group] = name + "+"

    async def _send(self, group: str) -> None:
        # What cannot be sent is not accepted; nothing here is so much that what was accepted could not be sent.
        name = self._names[group]
        try:
            await self._client.multicast(name, b"%d" % self._sent)
            self._notes("accepted", name, self._sent)
            self._sent += 1
        except quire.UnitUnavailable:
            pass
        except (quire.GroupLost, quire.NoSuchGroup):
            await self._enter(group)

    async def _change(self) -> None:
        """Leave and come back now and then."""
        while not self._stays and not self._over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._choose.uniform(0.2, 3)):
                    await self._over.wait()
            group = self._choose.choice(GROUPS)
            async with self._changing:
                with suppress(quire.GroupLost, quire.NoSuchGroup):
                    await self._again(lambda group=group: self._client.leave_group(self._names[group]))
            await self._enter(group)

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
                await Client(client, notes, over, choose, stays=given["stays"]).work()
            notes("left")
            return
        except quire.Evicted as error:
            say(evicted=str(error))
        except (quire.UnitUnavailable, quire.GroupLost, quire.NoSuchGroup):
            # It could not leave in time, or had nothing left to leave.
            return


async def main(given: dict[str, Any], over: asyncio.Event) -> None:
    network = {
        "backups": given["backups"], "options": {"tick_ms": 20, **given["options"]}, "timeout_s": given["timeout_s"],
        "join_s": 600, "insecure": True,
    }  # fmt: skip
    await (visit if given["me"] is None else serve)(given, network, over)


if __name__ == "__main__":
    run(main)
