"""Reports as people meet them: in a real browser, with a mouse, a keyboard, a finger; and no complaint on its console."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from quire.report.run_report import audit_here
from quire.report.write import write_report
from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate
from tests.audit.traces import plain, write
from tests.report.browser import Browser, find_browser
from tests.report.test_pages import small_sweep

pytestmark = pytest.mark.skipif(find_browser() is None, reason="no browser: install chromium to test reports in one")

PICTURES = os.environ.get("QUIRE_PICTURES")
"""A directory for screenshots, for a person to look at."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of each sort: a scenario, a run of some thousand events, a violated one, and a sweep."""
    home = tmp_path_factory.mktemp("pages")
    write(home / "tiny", plain("s0>012 d0:0 d1:0", "d0:0 s0>012 d1:0", "d0:0 d1:0"))
    write(home / "violated", plain("s0>012 d0:0 d1:0", "d0:0 s0>012 d1:0", "d1:0 d0:0"))
    simulate(
        SimulationConfig(
            members=8,
            network=NetworkConfig(delay="exponential:10"),
            workload=WorkloadConfig(messages=60, spacing="poisson", interval_ms=20.0),
        ),
        home / "busy",
    )
    for name in ("tiny", "violated", "busy"):
        write_report(home / name, home / f"{name}.html", audit_here(home / name))
    write_report(small_sweep(home / "sweep"), home / "sweep.html")
    return home


def check_quiet(browser: Browser, page: Path) -> None:
    assert browser.complaints == []
    assert browser.requests == [page.resolve().as_uri()], "nothing else was asked for"


def painted(browser: Browser) -> int:
    """How many different colours there are in the diagram; a blank one has one."""
    # Read from a copy, because a browser warns of a canvas that is read again and again.
    colours: int = browser.run(
        "(() => { const from = document.getElementById('diagram'); const to = document.createElement('canvas');"
        " to.width = from.width; to.height = from.height; const ink = to.getContext('2d', {willReadFrequently: true});"
        " ink.drawImage(from, 0, 0); const {data} = ink.getImageData(0, 0, to.width, to.height);"
        " return new Set(new Uint32Array(data.buffer)).size; })()"
    )
    return colours


def details(browser: Browser) -> str:
    text: str = browser.run("document.getElementById('details').innerText")
    return text


def canvas_place(browser: Browser) -> tuple[float, float, float, float]:
    browser.run("document.getElementById('diagram').scrollIntoView({block: 'center', behavior: 'instant'})")
    x, y, width, height = browser.run(
        "(({x, y, width, height}) => [x, y, width, height])(document.getElementById('diagram').getBoundingClientRect())"
    )
    return x, y, width, height


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
@pytest.mark.parametrize("name", ["tiny", "violated", "busy", "sweep"])
def test_every_page_is_drawn_in_every_light_and_on_a_phone(name: str, look: str, browser: Browser, pages: Path) -> None:
    page = pages / f"{name}.html"
    phone = look == "phone"
    browser.open(page, dark=look == "dark", phone=phone, width=390 if phone else 1280, height=844 if phone else 900)
    if name != "sweep":
        assert painted(browser) > 20
    wider = browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider == 0, "the page does not scroll sideways"
    ground = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(20, 22, 26)") == (look == "dark")
    if PICTURES:
        browser.picture(Path(PICTURES) / f"{name}-{look}.png")
    check_quiet(browser, page)


def test_a_click_on_a_message_lights_up_its_past_and_its_future(browser: Browser, pages: Path) -> None:
    browser.open(pages / "tiny.html")
    x, y, width, _ = canvas_place(browser)
    assert "2 messages in sight" in details(browser)
    # Message 1:0 is sent at the third of the steps, on the second line.
    before = painted(browser)
    spot = browser.run(
        "(() => { const d = JSON.parse(document.getElementById('data').textContent).trace;"
        " const i = d.kind.findIndex((k, i) => k === 0 && d.origin[i] === 1);"
        " return [d.step[i], Math.max(...d.step), d.members.indexOf(1)]; })()"
    )
    left, right, margin = 86, 14, 0.8
    at_x = x + left + (spot[0] + margin) / (spot[1] + 2 * margin) * (width - left - right)
    browser.click(at_x, y + 30 + 52 * (spot[2] + 0.5))
    assert "Message 1:0" in details(browser)
    assert "0:0" in details(browser), "its past"
    assert painted(browser) != before
    browser.key("Escape")
    browser.run("document.getElementById('diagram').focus()")
    browser.key("Escape")
    assert "2 messages in sight" in details(browser)
    check_quiet(browser, pages / "tiny.html")


def test_the_keyboard_is_enough(browser: Browser, pages: Path) -> None:
    browser.open(pages / "tiny.html")
    browser.run("document.getElementById('diagram').focus()")
    browser.key("ArrowRight")
    assert browser.run("document.getElementById('diagram').getAttribute('aria-label')").startswith("member 0 sent 0:0")
    browser.key("ArrowDown")
    assert browser.run("document.getElementById('diagram').getAttribute('aria-label')").startswith("member 1 delivered 0:0")
    browser.key("Enter")
    assert "Message 0:0" in details(browser)
    for key in ("+", "+", "-", "0", "ArrowRight", "ArrowUp", "End", "Home", "Escape"):
        browser.key(key)
    assert "in sight" in details(browser)
    browser.key("/")
    assert browser.run("document.activeElement.id") == "search"
    check_quiet(browser, pages / "tiny.html")


def test_search_finds_messages_and_members_and_says_when_there_is_nothing(browser: Browser, pages: Path) -> None:
    browser.open(pages / "busy.html")
    browser.run("document.getElementById('search').focus()")
    browser.type("3:7")
    assert "Message 3:7" in details(browser)
    assert browser.run("document.getElementById('found').textContent") == "found"
    browser.run("document.getElementById('search').select()")
    browser.type("member 5")
    assert " of " in browser.run("document.getElementById('found').textContent")
    browser.key("Enter")
    assert browser.run("document.getElementById('found').textContent").startswith("2 of ")
    browser.run("document.getElementById('search').select()")
    browser.type("<b>")
    assert browser.run("document.getElementById('found').textContent") == "not in this window"
    check_quiet(browser, pages / "busy.html")


def test_buttons_wheel_and_drag_change_what_is_in_sight(browser: Browser, pages: Path) -> None:
    browser.open(pages / "busy.html")
    x, y, width, height = canvas_place(browser)
    seen = set()

    def look() -> None:
        seen.add(browser.run("document.getElementById('diagram').toDataURL()"))

    look()
    for button in ("zoom-in", "zoom-out", "fit", "axis", "packets"):
        browser.run(f"document.getElementById('{button}').click()")
        look()
    browser.run("document.getElementById('zoom-in').click()")
    browser.drag(x + width * 0.7, y + height * 0.97, x + width * 0.4)
    look()
    browser.wheel(x + width / 2, y + height / 2, -240, control=True)
    look()
    assert len(seen) >= 6
    browser.move(x + width / 2, y + height / 2)
    check_quiet(browser, pages / "busy.html")


def test_a_witness_can_be_shown_in_the_diagram(browser: Browser, pages: Path) -> None:
    browser.open(pages / "violated.html")
    top = browser.run("scrollY")
    browser.run("document.documentElement.style.scrollBehavior = 'auto'; document.querySelector('.show-witness').click()")
    assert browser.run("scrollY") > top
    assert browser.run("document.querySelectorAll('svg.witness .wrong').length") > 0
    check_quiet(browser, pages / "violated.html")


def test_the_reader_can_choose_the_light(browser: Browser, pages: Path) -> None:
    browser.open(pages / "tiny.html")
    light = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.run("document.querySelector('.theme').click()")
    assert browser.run("getComputedStyle(document.body).backgroundColor") != light
    assert painted(browser) > 20
    check_quiet(browser, pages / "tiny.html")


def test_a_finger_is_enough(browser: Browser, pages: Path) -> None:
    browser.open(pages / "tiny.html", phone=True, width=390, height=844)
    x, y, width, _ = canvas_place(browser)
    data = browser.run("JSON.parse(document.getElementById('data').textContent).trace.step")
    margin = 0.8
    browser.tap(x + 34 + margin / (max(data) + 2 * margin) * (width - 34 - 14), y + 30 + 26)
    assert "Message 0:0" in details(browser)
    check_quiet(browser, pages / "tiny.html")
