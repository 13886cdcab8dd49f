"""Reports as people meet them: in a real browser, with a mouse, a keyboard, a finger; and no complaint on its console."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from quire.model.orders import Guarantee
from quire.pipeline.auditing.auditor import audit_here
from quire.report.write import write_report
from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.simulate import simulate
from tests.audit.traces import plain, write
from tests.audit.violated import ONE_EACH
from tests.kit.patience import PATIENCE_S
from tests.report.browser import Browser, find_browser
from tests.report.picture import picture
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


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a live run like that of `make demo`, with fewer messages."""
    run = tmp_path_factory.mktemp("live") / "run"
    quire = str(Path(sys.executable).with_name("quire"))
    command = [quire, "run", "--members", "3", "--messages", "3000", "--no-audit", "--out", str(run)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE_S)
    write_report(run, run / "report.html", audit_here(run))
    return run / "report.html"


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


COLOURS = """(() => {
  const from = document.getElementById('diagram'), to = document.createElement('canvas');
  to.width = from.width; to.height = from.height;
  const ink = to.getContext('2d', {willReadFrequently: true});
  ink.drawImage(from, 0, 0);
  const ratio = from.width / from.getBoundingClientRect().width;
  const [top, height] = [Math.round(TOP * ratio), Math.max(1, Math.round(HEIGHT * ratio))];
  const {data} = ink.getImageData(Math.round(LEFT * ratio), top, from.width - Math.round(LEFT * ratio), height);
  let coloured = 0;
  for (let i = 0; i < data.length; i += 4) {
    const most = Math.max(data[i], data[i + 1], data[i + 2]), least = Math.min(data[i], data[i + 1], data[i + 2]);
    if (data[i + 3] > 60 && most - least > 60) coloured += 1;
  }
  return coloured;
})()"""


def coloured(browser: Browser, top: float, height: float, left: float) -> int:
    """How many pixels of a strip of the diagram have a colour; lines, names and the ground are grey."""
    script = COLOURS.replace("TOP", str(top)).replace("HEIGHT", str(height)).replace("LEFT", str(left))
    found: int = browser.run(script)
    return found


def in_view(browser: Browser) -> tuple[int, int, int, int]:
    """What a screen reader is told of the diagram: members, arrows between them, sends, deliveries."""
    text = browser.run("document.getElementById('in-view').textContent")
    found = re.fullmatch(
        r"In view: (\d+) members?, (\d+) arrows? between members, (\d+) send marks?, (\d+) delivery marks?(, .* bars?)?\.",
        text,
    )
    assert found is not None, text
    members, arrows, sends, deliveries = map(int, found.groups()[:4])
    return members, arrows, sends, deliveries


def choose_messages(browser: Browser) -> str:
    """Go on to the first mark of messages, past those of views; what a screen reader is told of it."""
    label = str(browser.run("document.getElementById('diagram').getAttribute('aria-label')"))
    while not re.match(r"member \d (sent|delivered) ", label):
        before = label
        browser.key("ArrowRight")
        label = str(browser.run("document.getElementById('diagram').getAttribute('aria-label')"))
        assert label != before, "there are no messages"
    return label


def details(browser: Browser) -> str:
    text: str = browser.run("document.getElementById('details').innerText")
    return text


def canvas_box(browser: Browser) -> tuple[float, float, float, float]:
    browser.run("document.getElementById('diagram').scrollIntoView({block: 'center', behavior: 'instant'})")
    x, y, width, height = browser.run(
        "(({x, y, width, height}) => [x, y, width, height])(document.getElementById('diagram').getBoundingClientRect())"
    )
    return x, y, width, height


ROW, TOP = 78, 34
"""The height of a member's line where there are few members, and that of the axis above."""


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_the_first_picture_of_a_live_run_shows_every_member_and_arrows_and_deliveries(
    look: str, browser: Browser, live: Path
) -> None:
    """Without a click: a live member sends thousands of messages in a row, which must not fill the picture."""
    phone = look == "phone"
    browser.open(live, dark=look == "dark", phone=phone, width=390 if phone else 1400, height=844 if phone else 900)
    members, arrows, sends, deliveries = in_view(browser)
    assert members == 3
    assert arrows >= 2
    assert sends >= 1
    assert deliveries >= 3
    left = 42 if phone else 104
    for row in range(3):
        assert coloured(browser, TOP + ROW * (row + 0.5) - 8, 16, left) > 100, f"member {row} sent or delivered something"
    for row in range(2):
        assert coloured(browser, TOP + ROW * (row + 1) - 3, 6, left) > 10, f"an arrow crosses from member {row} to the next"
    if PICTURES:
        browser.picture(Path(PICTURES) / f"live-{look}.png")
    check_quiet(browser, live)


def test_the_picture_of_the_readme_is_what_a_report_draws(browser: Browser, live: Path) -> None:
    browser.open(live, width=1400)
    _, arrows, sends, deliveries = in_view(browser)
    drawn = fromstring(picture(live))
    shapes = [element.get("class", "") for element in drawn.iter("{http://www.w3.org/2000/svg}path")]
    senders = ("s0", "s1", "s2")
    assert sum(shape in senders for shape in shapes) >= arrows + sends, "arrow heads and marks of sends are filled"
    assert sum(shape in {f"l {sender}" for sender in senders} for shape in shapes) >= arrows + deliveries
    shown = fromstring((Path(__file__).parents[2] / "docs/pictures/demo.svg").read_text())
    assert {element.tag for element in shown.iter()} <= {element.tag for element in drawn.iter()}
    assert shown.get("viewBox", "").split()[:2] == ["0", "0"]


def test_a_run_of_messages_is_opened_with_the_keyboard_and_closed_again(browser: Browser, live: Path) -> None:
    browser.open(live, width=1400)
    browser.run("document.getElementById('diagram').focus()")
    first = in_view(browser)
    label = choose_messages(browser)
    assert re.match(r"member \d (sent|delivered) \d:\d+–\d+, [\d,]+ messages", label)
    browser.key("Enter")
    assert "count" in details(browser)
    assert "Open this run" in details(browser)
    browser.key("Enter")
    browser.key("0")
    assert sum(in_view(browser)[2:]) > sum(first[2:]), "more marks than before"
    assert not browser.run("document.getElementById('close').hidden")
    browser.key("c")
    browser.key("0")
    assert browser.run("document.getElementById('close').hidden")
    assert sum(in_view(browser)[2:]) <= sum(first[2:]) + 2
    check_quiet(browser, live)


def test_opening_a_run_again_and_again_ends_at_single_messages(browser: Browser, live: Path) -> None:
    browser.open(live, width=1400)
    browser.run("document.getElementById('diagram').focus()")
    for _ in range(12):
        label = choose_messages(browser)
        if "messages" not in label:
            break
        browser.key("Enter")
        browser.key("Enter")
        browser.key("Home")
    assert re.match(r"member \d (sent|delivered) \d:0 at", label)
    browser.key("Enter")
    assert re.search(r"Message \d:0\b", details(browser))
    check_quiet(browser, live)


def test_a_message_is_found_inside_a_run_and_drawn_by_itself(browser: Browser, live: Path) -> None:
    browser.open(live, width=1400)
    browser.run("document.getElementById('search').focus()")
    browser.type("1:17")
    text = details(browser)
    assert "Message 1:17" in text
    assert "count" not in text
    assert "1:0–16" in text, "what was sent in the same run before it is its past"
    assert re.search(r"1:18–\d+", text), "and what was sent after it its future"
    assert len(browser.run("[...document.querySelectorAll('#details tbody tr')].map((row) => row.innerText)")) >= 3
    check_quiet(browser, live)


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
    x, y, width, _ = canvas_box(browser)
    assert "2 messages in this window" in details(browser)
    # Message 1:0 is sent at the third of the steps, on the second line.
    before = painted(browser)
    spot = browser.run(
        "(() => { const d = JSON.parse(document.getElementById('data').textContent).trace;"
        " const i = d.kind.findIndex((k, i) => k === 0 && d.origin[i] === 1);"
        " return [d.step[i], Math.max(...d.step), d.members.indexOf(1)]; })()"
    )
    left, right, margin = 104, 14, 1.4
    at_x = x + left + (spot[0] + margin) / (spot[1] + 2 * margin) * (width - left - right)
    browser.click(at_x, y + TOP + ROW * (spot[2] + 0.5))
    assert "Message 1:0" in details(browser)
    assert "0:0" in details(browser), "its past"
    assert painted(browser) != before
    browser.key("Escape")
    browser.run("document.getElementById('diagram').focus()")
    browser.key("Escape")
    assert "2 messages in this window" in details(browser)
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
    assert "in this window" in details(browser)
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
    x, y, width, height = canvas_box(browser)
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
    assert in_view(browser)[1] > 0, "arrows are in view"
    check_quiet(browser, pages / "violated.html")


@pytest.mark.parametrize("guarantee", Guarantee)
def test_every_violated_guarantee_is_drawn_and_shown_in_the_diagram(
    guarantee: Guarantee, browser: Browser, tmp_path: Path
) -> None:
    run, page = ONE_EACH[guarantee].write(tmp_path / "run"), tmp_path / "report.html"
    write_report(run, page, audit_here(run))

    browser.open(page)

    assert guarantee in browser.run("document.querySelector('.banner').innerText")
    assert browser.run("document.querySelectorAll('svg.witness .event').length") > 0
    assert browser.run("document.querySelectorAll('svg.witness .wrong, svg.witness .never').length") > 0
    browser.run(
        "document.documentElement.style.scrollBehavior = 'auto'; scrollTo(0, 0);"
        f" document.querySelector('.show-witness[data-check={guarantee}]').click()"
    )
    assert browser.run("scrollY") > 0
    assert painted(browser) > 20
    if PICTURES:
        browser.picture(Path(PICTURES) / f"violated-{guarantee}.png")
    check_quiet(browser, page)


def test_the_reader_can_choose_the_light(browser: Browser, pages: Path) -> None:
    browser.open(pages / "tiny.html")
    light = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.run("document.querySelector('.theme').click()")
    assert browser.run("getComputedStyle(document.body).backgroundColor") != light
    assert painted(browser) > 20
    check_quiet(browser, pages / "tiny.html")


def test_a_finger_is_enough(browser: Browser, pages: Path) -> None:
    browser.open(pages / "tiny.html", phone=True, width=390, height=844)
    x, y, width, _ = canvas_box(browser)
    data = browser.run("JSON.parse(document.getElementById('data').textContent).trace.step")
    left, right, margin = 42, 14, 1.4
    browser.tap(x + left + margin / (max(data) + 2 * margin) * (width - left - right), y + TOP + ROW / 2)
    assert "Message 0:0" in details(browser)
    check_quiet(browser, pages / "tiny.html")
