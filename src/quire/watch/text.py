"""The live view as tables in a terminal, redrawn continuously, for a machine without a browser."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from quire.watch.server import PAGE_S, Watching

_COLOURS = {"holds": "green", "violated": "bold red", "undecided": "yellow"}
_CONDITIONS = {"blocked": "yellow", "unread": "yellow", "failed": "red", "missing": "red", "running": "green"}
_BAD = ("lost", "violated", "unreachable", "excluded")
_LEFT_OUT_FIRST = ("unread", "not delivered", "latency")
"""Columns of the table, the least important first."""
_GAP = 2
"""The space between two columns."""
HAPPENINGS_SHOWN = 8
LAG_SHOWN_S = 0.05


async def watch_text(watching: Watching, console: Console, *, once: bool = False) -> None:
    """Draw until cancelled; with `once`, draw once, when everything that answers is known, with its rates and the verdict."""
    if once:
        while watching.is_new():
            await asyncio.sleep(0.05)
        console.print(screen(watching.snapshot(), console.width))
        return
    with Live(console=console, auto_refresh=False, screen=True) if console.is_terminal else nullcontext() as live:
        while True:
            tables = screen(watching.snapshot(), console.width)
            if live is None:
                console.print(tables, "")  # Into a file or a pipe: one after the other.
            else:
                live.update(tables, refresh=True)
            await asyncio.sleep(PAGE_S)


def screen(now: dict[str, Any], width: int) -> Group:
    parts: list[Any] = [_headline(now), _members(now["processes"], width)]
    if details := [each for each in now["processes"] if _detail(each)]:
        parts.append(_details(details))
    if now["waits"]:
        parts.append(_waits(now["waits"]))
    if now["incidents"]:
        parts.append(_incidents(now["incidents"][:HAPPENINGS_SHOWN]))
    return Group(*parts)


def _headline(now: dict[str, Any]) -> Text:
    title, verdict = now["title"], now["verdict"]
    text = Text.assemble((title["group"], "bold"), f"  {title['protocol']}  ")
    if verdict is not None:
        text.append(verdict["verdict"], _COLOURS[verdict["verdict"]])
        broken = [check["name"] for check in verdict["checks"] if check["verdict"] == "violated" and check["expected"]]
        said = [", ".join(broken) if broken else verdict["why"] or f"{verdict['deliveries']:,} deliveries judged"]
        if verdict["lag_s"] > LAG_SHOWN_S:
            said.append(f"{verdict['lag_s']:.1f} s behind")
        if verdict["beyond"]:
            said.append(f"not judged: {verdict['beyond']}")
        text.append(f" ({'; '.join(said)})")
    return text


def _members(processes: list[dict[str, Any]], width: int) -> Table:
    """One row a process. Columns for which there is no room are left out, the least important first."""
    columns: dict[str, list[Text]] = {name: [] for name in ("process", "state", "view", "delivered/s", *_LEFT_OUT_FIRST[::-1])}
    for each in processes:
        condition, last, inbox = _condition(each), each["last"], each.get("queues", {}).get("inbox")
        columns["process"].append(Text(each["name"], "bold"))
        columns["state"].append(Text(condition, _CONDITIONS.get(condition, "")))
        columns["view"].append(Text(str(each.get("view") or "–")))
        columns["delivered/s"].append(Text(_number(last["delivered"])))
        columns["latency"].append(Text("–" if last["latency"] is None else f"{last['latency'] * 1e3:,.2f} ms"))
        columns["not delivered"].append(Text(_number(each.get("unsettled"))))
        columns["unread"].append(Text("–" if inbox is None else f"{inbox[0]:,}"))
    for name in (*_LEFT_OUT_FIRST, "view", "delivered/s"):
        if sum(max(len(name), *map(len, cells)) + _GAP for name, cells in columns.items()) <= width + _GAP:
            break
        del columns[name]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in columns:
        table.add_column(name, justify="left" if name in ("process", "state") else "right", no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table


def _condition(process: dict[str, Any]) -> str:
    return "missing" if process["missing"] else process.get("condition", "running")


def _detail(process: dict[str, Any]) -> str:
    """Why the process does not run or, if it does, what only its kind has to say."""
    tiles = (
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value, _ in process.get("tiles", ())
    )
    return process["missing"] or process.get("why") or ", ".join(tiles)


def _details(processes: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for each in processes:
        table.add_row(
            Text(each["name"], "bold"), Text(_detail(each), _CONDITIONS.get(_condition(each), "") if each["missing"] else "")
        )
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _waits(waits: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", title_justify="left", show_header=False)
    for each in waits[:HAPPENINGS_SHOWN]:
        who = "its own application" if each["from"] == each["to"] else each["to"]
        table.add_row(Text(f"{each['from']} waits for {who}", "yellow"), Text(each["because"]))
    return table


def _incidents(incidents: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    for each in incidents:
        when = time.strftime("%H:%M:%S", time.localtime(each["at"]))
        table.add_row(Text(when, "dim"), Text(each["text"], "red" if each["kind"] in _BAD else ""))
    return table
