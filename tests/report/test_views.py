"""The diagram shows views as bars along the members' lines, and what happens to members as signs on them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.pipeline import Verdict
from quire.pipeline.auditing.auditor import audit_here
from quire.report.run_report import report_run
from quire.report.write import write_report
from tests.audit.traces import plain, timed, write
from tests.report.browser import Browser, find_browser
from tests.report.changing import write_changing
from tests.report.test_browser import ROW, TOP, canvas_box, check_quiet, painted

PICTURES = os.environ.get("QUIRE_PICTURES")
in_browser = pytest.mark.skipif(find_browser() is None, reason="no browser: install chromium to test reports in one")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_changing(tmp_path_factory.mktemp("views") / "run")


@pytest.fixture(scope="module")
def page(run: Path) -> Path:
    write_report(run, run / "report.html", audit_here(run))
    return run / "report.html"


def drawn(run: Path, **window: Any) -> dict[str, Any]:
    """What the page's script is given."""
    found = re.search(r'id="data">(.*?)</script>', report_run(run, None, **window), re.DOTALL)
    assert found is not None
    trace: dict[str, Any] = json.loads(found[1])["trace"]
    return trace


def test_a_run_in_which_members_come_and_go_keeps_all_that_it_promises(run: Path) -> None:
    assert {check.verdict for check in audit_here(run).checks.values()} == {Verdict.HOLDS}


def test_the_page_knows_everything_that_happened_to_members(run: Path) -> None:
    happened = [(it["process"], it["op"], it["number"]) for it in drawn(run)["incidents"]]

    assert [each for each in happened if each[0] == 3] == [
        (3, "install", 1), (3, "install", 2), (3, "cut", 2), (3, "blocked", 2), (3, "healed", 3), (3, "unblocked", 3),
        (3, "excluded", 3), (3, "install", 4), (3, "install", 5),
    ]  # fmt: skip
    assert (4, "crash", 1) in happened
    assert (2, "resume", 3) in happened
    assert (1, "left", 4) in happened


def test_a_window_that_begins_in_the_middle_knows_in_which_view_each_member_is(run: Path) -> None:
    trace = drawn(run, centre="1:1", events=6)
    first = {
        member: min(pos for p, pos in zip(trace["process"], trace["pos"], strict=True) if p == member) for member in (0, 1)
    }
    before = [(it["process"], it["op"]) for it in trace["incidents"] if it["pos"] < first.get(it["process"], 0)]

    assert {(0, "install"), (0, "cut"), (1, "install"), (1, "cut")} <= set(before)
    assert len(before) == len(set(before)), "only the last of each kind"


def test_where_a_process_crashed_is_drawn_without_any_view(tmp_path: Path) -> None:
    crashed = timed(plain("s0>01 d0:0", "d0:0").logs, frozenset({1}))

    assert drawn(write(tmp_path / "run", crashed))["ended"] == [1]


@in_browser
@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_views_are_drawn_in_every_light_and_on_a_phone(look: str, browser: Browser, page: Path) -> None:
    phone = look == "phone"
    browser.open(page, dark=look == "dark", phone=phone, width=390 if phone else 1400, height=844 if phone else 900)

    said = browser.run("document.getElementById('in-view').textContent")
    bars = re.search(r", (\d+) view bars\.$", said)
    assert bars is not None, said
    assert int(bars[1]) >= 5 if phone else int(bars[1]) == 20
    assert painted(browser) > 20
    assert browser.run("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    if PICTURES:
        browser.picture(Path(PICTURES) / f"views-{look}.png")
    check_quiet(browser, page)


@in_browser
def test_the_pointer_is_told_of_the_view_under_it_and_its_members(browser: Browser, page: Path) -> None:
    browser.open(page, width=1400)
    x, y, width, _ = canvas_box(browser)
    said = set()
    for step in range(110, int(width) - 10, 5):
        browser.move(x + step, y + TOP + ROW * 3.5 + 15)
        said.add(browser.run("document.querySelector('.tip').hidden ? '' : document.querySelector('.tip').textContent"))

    assert {
        "member 3: view 1 of members 0, 1, 2, 3 and 4",
        "member 3: view 2 of members 0, 1, 2 and 3",
        "member 3: view 2 of members 0, 1, 2 and 3, waiting for a majority, cut off from members 0, 1 and 2",
        "member 3: in no view",
        "member 3 in incarnation 2: view 5 of members 0, 2 and 3",
    } <= said
    check_quiet(browser, page)


@in_browser
def test_the_keyboard_comes_to_everything_that_happened(browser: Browser, page: Path) -> None:
    browser.open(page, width=1400)
    browser.run("document.getElementById('diagram').focus()")
    said = []
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "Home"):
        browser.key(key)
    for _ in range(30):
        said.append(browser.run("document.getElementById('diagram').getAttribute('aria-label')").partition(" at ")[0])
        browser.key("ArrowRight")

    assert "member 2 installed view 1 of members 0, 1, 2, 3 and 4" in said
    assert "member 2 was cut off from member 3" in said
    assert "member 2 crashed" in said
    assert "member 2 in incarnation 2 was restarted and continues in view 3, with 1 message of it kept" in said
    assert "member 2 in incarnation 2 could reach member 3 again" in said
    check_quiet(browser, page)


@in_browser
def test_the_legend_names_the_signs_that_occur(browser: Browser, page: Path, tmp_path: Path) -> None:
    signs = "[...document.querySelectorAll('.legend li')].filter((li) => li.offsetParent).map((li) => li.lastChild.textContent)"
    browser.open(page)
    shown = browser.run(signs)
    quiet = write(tmp_path / "run", plain("s0>01 d0:0", "d0:0"))
    write_report(quiet, tmp_path / "report.html", audit_here(quiet))
    browser.open(tmp_path / "report.html")
    usual = browser.run(signs)

    of_views = {"in a view", "crashed", "excluded", "left", "restarted", "waits for a majority", "cut off from others"}
    assert of_views <= set(shown)
    assert of_views.isdisjoint(usual)
