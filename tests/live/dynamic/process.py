"""A member in a process of its own, which sends all the time and prints what happens, one JSON object a line.

Started with its settings as JSON in its only argument. Lines on its standard input say what to do: `move` and a cluster; and
what ends it, `leave` or `close`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import quire
from tests.kit.patience import PATIENCE_S


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def main(settings: dict[str, Any]) -> None:
    sending = settings.pop("sending", True)
    if "protocol" not in settings:
        settings["order"] = "total"
    group: quire.DynamicGroup = quire.join("test", **settings)
    loop = asyncio.get_running_loop()
    end: asyncio.Future[str] = loop.create_future()

    async def move(cluster: str) -> None:
        await group.move(cluster)
        say(moved=cluster)

    def obey() -> None:
        for line in sys.stdin:
            what, _, cluster = line.strip().partition(" ")
            if what != "move":
                loop.call_soon_threadsafe(end.set_result, what)
                return
            asyncio.run_coroutine_threadsafe(move(cluster), loop)

    threading.Thread(target=obey, daemon=True).start()

    async def read() -> None:
        async for event in group.events():
            if isinstance(event, quire.ViewMessage):
                say(delivered=[event.origin, event.seq, event.payload.decode()])
            elif isinstance(event, quire.View):
                say(view=list(event.members), agents=event.agents)
            else:
                say(**{type(event).__name__.lower(): event.view})

    async def send() -> None:
        number = 0
        while not end.done():
            try:
                message = await group.execute(f"{group.me}/{os.getpid()}/{number}".encode())
            except (quire.OutcomeUnknown, quire.NoQuorum, quire.GroupClosed):
                return
            say(acked=message.payload.decode())
            number += 1
            await asyncio.sleep(0.001)

    await group.__aenter__()
    say(ready=os.getpid())
    tasks = [asyncio.ensure_future(read()), *([asyncio.ensure_future(send())] if sending else [])]
    how = await end
    await asyncio.gather(*tasks[1:])
    await (group.close() if how == "close" else group.leave())
    await tasks[0]
    say(ended=how)


class Started:
    """Such a process, as a test sees it."""

    def __init__(self, **settings: Any) -> None:
        self.me: str = settings["me"]
        self.lines: list[dict[str, Any]] = []
        self.settings = settings
        self._news = threading.Condition()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.live.dynamic.process", json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self.lines.append(json.loads(line))
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def until(self, condition: Callable[[Started], bool]) -> None:
        with self._news:
            done = self._news.wait_for(lambda: condition(self) or self._process.poll() is not None, PATIENCE_S)
            assert done, f"{self.me} waits in vain after {self.lines[-5:]}"
            assert condition(self), f"{self.me} has ended after {self.lines[-5:]}"

    def all(self, kind: str) -> list[Any]:
        return [line[kind] for line in list(self.lines) if kind in line]

    def is_in(self, *names: str) -> None:
        self.until(lambda one: bool(one.all("view")) and set(one.all("view")[-1]) == set(names))

    def acks(self, more: int) -> None:
        """Return when so many more of its messages were acknowledged."""
        goal = len(self.all("acked")) + more
        self.until(lambda one: len(one.all("acked")) >= goal)

    @property
    def delivered(self) -> list[str]:
        return [payload for _, _, payload in self.all("delivered")]

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """As `kill -9`; afterwards everything that it printed is here."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._close()

    def tell(self, what: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()

    def end(self, how: str) -> None:
        self.tell(how)
        self.until(lambda one: bool(one.all("ended")))
        self._process.wait()
        self._reader.join()
        self._close()

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
