"""The page in a real browser, about real processes: what happens to them is what it shows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quire.live.runs.fleet import free_addresses
from tests.kit.patience import Stretch
from tests.live.dynamic.kit import cut_off, mend
from tests.report.browser import Browser, find_browser
from tests.watch.watched import Page, Parted, Processes, judged, page_about

pytestmark = pytest.mark.skipif(find_browser() is None, reason="there is no chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


def test_three_members_deliver_and_the_one_that_is_killed_is_lost(browser: Browser) -> None:
    with (
        Processes(a="reads", b="reads", c="reads") as processes,
        page_about(*processes.observed.values(), browser=browser) as page,
    ):
        page.until(lambda page: page.cards() == dict.fromkeys("abc", "running"))
        page.until(lambda page: judged(page) == "holds")
        assert "view 2" in page.text("facts")
        assert all(url.startswith(page.url) for url in browser.requests)
        check_the_diagram(page)
        note_when(page, LOST)
        with Stretch() as stretch:
            killed = time.time()
            processes.kill("c")
            page.until(lambda page: page.browser.run("window.noted !== null"))
            took_s = page.browser.run("window.noted") - killed
        assert took_s <= WITHIN_S * stretch.factor, (took_s, stretch.factor)
        # One of them may be heard before the other.
        page.until(lambda page: "a and b agreed on view 3 without c in" in page.text("incidents"))
        assert "c does not answer any more" in page.text("incidents")
        assert judged(page) == "holds"
        check_that_it_fits(page)


LOST = """
  ["without c", "agreed on view 3", "paused for"].every((it) => document.querySelector("#incidents").innerText.includes(it))
  && document.querySelector(".card[data-name=c]").dataset.condition === "missing"
  && document.querySelector("#timeline").textContent.includes("view 3")
"""
"""The new view, the pause, and who was lost."""
WITHIN_S = 2.0


def note_when(page: Page, holds: str) -> None:
    """Have the page note by its own clock when it first shows this."""
    page.browser.run(
        f"""(() => {{
          window.noted = null;
          const look = () => {{ if (window.noted === null && ({holds})) window.noted = Date.now() / 1000; }};
          new MutationObserver(look).observe(document.body, {{ childList: true, subtree: true, characterData: true }});
        }})()"""
    )


def check_the_diagram(page: Page) -> None:
    """It moves while it is in sight, and only then. A message that is chosen has a past and a future, and stands still."""
    browser = page.browser
    page.until(lambda page: page.browser.run("!document.getElementById('space-time').hidden"))
    assert not page.text("in-view")
    browser.run("document.getElementById('space-time').scrollIntoView()")
    page.until(lambda page: "arrow" in page.browser.run("document.getElementById('in-view').textContent"))
    browser.run("document.getElementById('diagram').focus()")
    for key in ("ArrowRight", "Enter"):
        browser.key(key)
    assert browser.run("document.getElementById('details').innerText.length") > 0
    page.until(lambda page: "stands still" in page.text("diagram-lead"))
    browser.key("Escape")
    page.until(lambda page: "as they come" in page.text("diagram-lead"))
    browser.run("scrollTo(0, 0)")  # What is out of sight is not laid out, and so has no text that could be read.


FITS = """
  (() => {
    const inside = (it) => it.getBoundingClientRect().left >= 0 && it.getBoundingClientRect().right <= innerWidth;
    const within = (it) => { const range = document.createRange(); range.selectNodeContents(it); return range; };
    const lines = (it) => within(it).getClientRects().length;
    const timeline = document.getElementById("timeline"), search = document.getElementById("search");
    const now = [...timeline.querySelectorAll("text")].find((each) => each.textContent.startsWith("now"));
    const down = [...document.querySelectorAll("#links td.bad")];
    return Boolean(now) && inside(now) && timeline.scrollWidth <= timeline.clientWidth
      && down.length > 0 && down.every((each) => each.textContent === "down" && lines(each) === 1)
      && [...document.querySelectorAll("#links th, #links td")].every(inside)
      && [...document.querySelectorAll("#links td:first-child")].every((each) => lines(each) === 1)
      && (search.offsetParent === null || (search.offsetHeight >= 44 && parseFloat(getComputedStyle(search).fontSize) >= 16));
  })()
"""
"""The timeline up to now, words in one piece, columns that fit, and a search field for a finger."""


def check_that_it_fits(page: Page) -> None:
    """A phone, dark: nothing is wider than the screen, and all of it can be read."""
    page.open(width=390, height=844, dark=True, phone=True)
    page.until(lambda page: bool(page.cards()))
    page.until(lambda page: not page.browser.run("document.getElementById('space-time').hidden"))
    page.until(lambda page: page.browser.run(FITS))
    assert page.browser.run("document.documentElement.scrollWidth") <= 390
    assert page.browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(20, 22, 26)"
    for theme in ("dark", "light"):
        page.browser.run(f"document.documentElement.dataset.theme = '{theme}'")
        assert page.browser.run(PALE) == []


PALE = """
  (() => {
    const light = (colour) => {
      const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
      const [red, green, blue] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const ground = (it) => {
      const colour = getComputedStyle(it).backgroundColor;
      return /, 0\\)$/.test(colour) && it.parentElement ? ground(it.parentElement) : colour;
    };
    const says = (it) => [...it.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
    const pale = new Set();
    for (const it of document.querySelectorAll("main :not(title, .hidden)")) {
      if (!says(it)) continue;
      const style = getComputedStyle(it), colour = it instanceof SVGElement ? style.fill : style.color;
      const [more, less] = [light(colour), light(ground(it))].sort((a, b) => b - a);
      if ((more + 0.05) / (less + 0.05) < 4.5) pale.add(`${it.tagName} ${colour} on ${ground(it)}: ${it.textContent}`);
    }
    return [...pale];
  })()
"""
"""Texts whose contrast to their ground is less than what the accessibility guidelines ask for (WCAG 2, 1.4.3)."""


def test_a_member_whose_application_reads_nothing_is_the_one_whom_all_wait_for(browser: Browser) -> None:
    with (
        Processes(a="reads", b="reads", c="lazy") as processes,
        page_about(*processes.observed.values(), browser=browser) as page,
    ):
        page.until(lambda page: page.cards().get("c") == "unread")
        page.until(lambda page: "c waits for its own application" in page.text("waits"))
        assert "has not read" in page.text("waits")


def test_a_member_that_delivers_out_of_order_is_found(browser: Browser) -> None:
    with (
        Processes(a="reads", b="reads", c="faulty") as processes,
        page_about(*processes.observed.values(), browser=browser) as page,
    ):
        page.until(lambda page: judged(page) == "violated")
        total = "document.querySelector('[data-check=total]').dataset.verdict"
        page.until(lambda _: browser.run(total) == "violated")  # Another order may be found to be violated first.
        page.until(lambda page: "total is violated" in page.text("incidents"))
        because = browser.run("document.querySelector('[data-check=total] .because').textContent")
        assert because.split(" delivered ")[0] in ("a", "b", "c"), "names stay as they are"


def test_a_minority_is_blocked_and_comes_back_when_the_partition_heals(browser: Browser) -> None:
    names = ("a", "<b>bold</b>&amp;", "c")
    with Parted(*names) as parted, page_about(*parted.observed.values(), browser=browser) as page:
        page.until(lambda page: page.cards() == dict.fromkeys(names, "running"))
        parted.do(do(lambda: cut_off("127.0.0.1:7002")))
        page.until(lambda page: page.cards().get("c") == "blocked")
        page.until(lambda page: "without c" in page.text("incidents") and "c waits for a majority" in page.text("incidents"))
        # It still runs, and answers; nobody waits for it with the verdict on what the others do.
        judged_then = page.state()["verdict"]["deliveries"]
        page.until(lambda page: page.state()["verdict"]["deliveries"] > judged_then + 300)
        assert page.cards().get("c") == "blocked"
        parted.do(do(lambda: mend("127.0.0.1:7002")))
        page.until(lambda page: page.cards() == dict.fromkeys(names, "running"))
        page.until(lambda page: "c joined" in page.text("incidents"))
        assert browser.run(
            "document.querySelectorAll('main b').length === document.querySelectorAll('.check-head b, .waits b').length"
        )
        assert names[1] in page.text("cards")


async def do(what: object) -> None:
    assert callable(what)
    what()


def test_what_does_not_answer_is_said_so(browser: Browser, tmp_path: Path) -> None:
    (nobody,) = free_addresses(1)
    with page_about(nobody, browser=browser) as page:
        page.until(lambda page: page.cards() == {nobody: "missing"})
        browser.picture(tmp_path / "missing.png")
