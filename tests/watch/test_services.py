"""The page about services, in a real browser and about real processes: what each kind has to say, and the verdict."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from quire.live.runs.fleet import free_addresses
from tests.report.browser import Browser, find_browser
from tests.watch.watched import HOME, QUIRE, Page, judged, page_about

pytestmark = pytest.mark.skipif(find_browser() is None, reason="there is no chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@contextmanager
def started(*commands: Sequence[str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes, until they are killed."""
    processes = [subprocess.Popen(each, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=HOME) for each in commands]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def service(what: str, me: int, members: Sequence[str], observe: str) -> list[str]:
    return [sys.executable, "-m", "tests.watch.service", what, str(me), json.dumps(members), observe]


def tiles(page: Page, name: str) -> dict[str, str]:
    """What the card of a process says."""
    found: dict[str, str] = page.browser.run(
        f"Object.fromEntries([...document.querySelectorAll('.card[data-name={json.dumps(name)}] dt')]"
        ".map((term) => [term.textContent, term.nextElementSibling.textContent]))"
    )
    return found


def test_sequencers_show_their_load_their_groups_and_moves(browser: Browser) -> None:
    sequencers, shown = list(free_addresses(2)), list(free_addresses(4))
    serving = [
        [QUIRE, "serve", "--listen", address, "--peers", ",".join(sequencers), "--observe", at]
        for address, at in zip(sequencers, shown, strict=False)
    ]
    clients = [service("client", me, sequencers, shown[2 + me]) for me in range(2)]
    with started(*serving, *clients), page_about(*shown, browser=browser) as page:
        page.until(lambda page: page.cards() == dict.fromkeys("0123", "running"))
        page.until(lambda page: judged(page) == "holds")
        page.until(lambda page: int(tiles(page, "0").get("groups moved", "0by").partition("by")[0]) > 1)
        said = {"messages numbered", "numbered a second", "groups here", "messages that wait", "groups given", "groups taken"}
        page.until(lambda page: said <= set(tiles(page, "0")) & set(tiles(page, "1")))
        assert tiles(page, "2")["groups joined"].startswith("2")
        page.until(lambda page: "violated" not in page.text("verdict-body") or "not expected" in page.text("verdict-body"))


def test_stores_show_what_is_open_and_why_something_was_aborted(browser: Browser) -> None:
    members, shown = list(free_addresses(4)), list(free_addresses(4))
    commands = [service("store", me, members, shown[me]) for me in range(4)]
    with started(*commands), page_about(*shown, browser=browser) as page:
        page.until(lambda page: "zero division error" in tiles(page, "2").get("aborted", ""))
        page.until(lambda page: judged(page) == "holds")
        assert {"transactions open", "committed", "committed a second", "tried again"} <= set(tiles(page, "3"))
        assert tiles(page, "0")["keys"] == "2"
        assert browser.run("document.querySelector('[data-check=serialisable]').dataset.verdict") == "holds"
        page.until(lambda page: page.browser.run("!document.getElementById('space-time').hidden"))


def test_objects_show_the_calls_that_wait_for_a_conflict(browser: Browser) -> None:
    members, shown = list(free_addresses(2)), list(free_addresses(2))
    commands = [service("objects", me, members, shown[me]) for me in range(2)]
    with started(*commands), page_about(*shown, browser=browser) as page:
        page.until(lambda page: tiles(page, "0").get("calls in conflict", "").startswith("1"))
        page.until(lambda page: "add at counter conflicts with add that runs there" in page.text("waits"))
        page.until(lambda page: judged(page) == "holds")
        checks = browser.run("[...document.querySelectorAll('[data-check]')].map((check) => check.dataset.check)")
        assert checks == ["integrity", "agreement", "significant"]


def test_the_processes_of_a_planned_run_are_watched_by_its_file(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    members, shown = json.dumps(free_addresses(4)), json.dumps(free_addresses(4))
    file.write_text(
        f'members = {members}\nobserve = {shown}\nprotocol = "transactions"\nmessages = 100000\nrate = 50\n'
        "[options]\nclients = 2\n"
    )
    run = [QUIRE, "run", "--hosts", str(file), "--out", str(tmp_path / "run"), "--no-audit", "--no-report"]
    with started(run), page_about("--group", str(file), browser=browser) as page:
        page.until(lambda page: page.cards() == dict.fromkeys("0123", "running"))
        page.until(lambda page: judged(page) == "holds")
        assert "transactions" in page.text("facts")
