"""Fifty members and a day of history in a real browser: what the page keeps and draws does not grow."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from quire.http.addresses import HttpAddress
from quire.watch.scene import Scene
from quire.watch.series import COARSE, FINE, MINUTE_S
from quire.watch.server import LEAST_S, PageServer, Watching
from tests.kit.patience import PATIENCE_S
from tests.report.browser import Browser, find_browser
from tests.watch.test_bounds import MEMBERS, STATUSES

pytestmark = pytest.mark.skipif(find_browser() is None, reason="there is no chromium")

ELEMENTS_MAX = 4_000
POINTS_MAX = 130
"""Of each line that is drawn: of the day, the largest value of some minutes."""
HEAP_BYTES_MAX = 64 << 20


class FiftyMembers:
    """They stand as they stood, for ever; what they did the day before is known."""

    async def follow(self, scene: Scene) -> None:
        now = time.time()
        for name in MEMBERS:
            scene.add(name)
            for series in scene.find(name).series.values():
                series.fine.extend((now - (FINE - look) * 0.5, float(look)) for look in range(FINE))
                series.coarse.extend((now - (COARSE - minute) * MINUTE_S, float(minute)) for minute in range(COARSE))
        while True:
            for name in MEMBERS:
                scene.stands(name, STATUSES[name])
            scene.note()  # Pages are brought up to date at once.
            await asyncio.sleep(LEAST_S)


@pytest.fixture
def address() -> Iterator[HttpAddress]:
    """Where the page about them is served, in a thread of its own."""
    found: list[HttpAddress] = []
    ready, loop = threading.Event(), asyncio.new_event_loop()

    def tell(at: HttpAddress) -> None:
        found.append(at)
        ready.set()

    async def serve() -> None:
        async with Watching([FiftyMembers()]) as watching:
            await PageServer(watching, HttpAddress("127.0.0.1", 0)).serve(tell)

    task = loop.create_task(serve())
    thread = threading.Thread(target=lambda: loop.run_until_complete(asyncio.wait([task])), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S)
    yield found[0]
    loop.call_soon_threadsafe(task.cancel)
    thread.join()
    loop.close()


UPDATES = """new Promise((done) => {
  let seen = 0;
  new MutationObserver(() => { seen += 1; if (seen === %d) done(document.getElementsByTagName("*").length); })
    .observe(document.getElementById("cards"), { childList: true });
})"""


LONGEST_LINE = (
    "Math.max(...[...document.querySelectorAll('.chart .line')].map((line) => line.getAttribute('d').split('L').length))"
)


def test_fifty_members_and_a_day_do_not_make_the_page_grow(address: HttpAddress) -> None:
    with Browser() as browser:
        browser.open(f"http://{address}/", height=4000)
        browser.run("document.getElementById('span-day').click()")
        early = browser.run(UPDATES % 4)
        late = browser.run(UPDATES % 12)
        assert browser.run("document.querySelectorAll('.card').length") == len(MEMBERS)
        assert late <= early * 1.05
        assert late < ELEMENTS_MAX
        assert browser.run("performance.memory.usedJSHeapSize") < HEAP_BYTES_MAX
        assert browser.run(LONGEST_LINE) <= POINTS_MAX
        assert browser.complaints == []
        browser.open("about:blank")
