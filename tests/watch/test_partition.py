"""A partition of real processes on hosts of their own, as the page shows it, which somebody opens on another host."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.live.hosts import hosts
from tests.report.browser import Browser, find_browser
from tests.watch.member import TOKEN
from tests.watch.watched import Processes, judged, page_about

pytestmark = pytest.mark.skipif(find_browser() is None, reason="there is no chromium")


def test_the_minority_is_blocked_and_joins_again_when_the_partition_heals(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    with (
        hosts(4) as here,
        Browser(on=here.on(3)) as browser,
        Processes(here, a="reads", b="reads", c="reads") as processes,
        page_about(*processes.observed.values(), "--token-file", str(token), browser=browser, on=here.on(3)) as page,
    ):
        page.until(lambda page: page.cards() == dict.fromkeys("abc", "running"))
        apart = [*product((0, 1), (2,)), *product((2,), (0, 1))]
        here.cut(apart)
        page.until(lambda page: page.cards() == {"a": "running", "b": "running", "c": "blocked"})
        page.until(lambda page: "without c" in page.text("incidents") and "c waits for a majority" in page.text("incidents"))
        here.heal(apart)
        page.until(lambda page: page.cards() == dict.fromkeys("abc", "running"))
        page.until(lambda page: "c joined" in page.text("incidents"))
        page.until(lambda page: judged(page) == "holds")
