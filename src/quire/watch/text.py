"""The live view as tables in a terminal, redrawn continuously, for a machine without a browser."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from quire.watch.server import PAGE_S, Watching

_COLOURS = {"holds": "green", "violated": "bold red", "undecided": "yellow"}
_CONDITIONS = {"blocked": "yellow", "unread": "yellow", "failed": "red", "missing": "red", "running": "green"}
_BAD = ("lost", "violated", "unreachable", "excluded")
HAPPENINGS_SHOWN = 8


async def watch_text(watching: Watching, console: Console, *, once: bool = False) -> None:
    """Draw until cancelled; with `once`, draw once every process was heard from or could not be reached."""
    if once:
        while watching.scene.expects():
            await asyncio.sleep(0.05)
        console.print(screen(watching.snapshot()))
        return
    with Live(console=console, auto_refresh=False, screen=console.is_terminal) as live:
        while True:
            live.update(screen(watching.snapshot()), refresh=True)
            await asyncio.sleep(PAGE_S)


def screen(now: dict[str, Any]) -> Group:
    parts: list[Any] = [_headline(now), _members(now["processes"])]
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
        said = ", ".join(broken) if broken else verdict["why"] or f"{verdict['deliveries']:,} deliveries judged"
        behind = [f"{verdict['lag_s']:.1f} s behind", *([f"not judged: {verdict['beyond']}"] if verdict["beyond"] else [])]
        text.append(f" ({'; '.join([said, *behind])})")
    return text


def _members(processes: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("process", "state", "view", "delivered/s", "latency", "not delivered", "unread", "more"):
        right = name in ("view", "delivered/s", "latency", "not delivered", "unread")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "more", overflow="fold")
    for each in processes:
        condition = "missing" if each["missing"] else each.get("condition", "running")
        why = each["missing"] or each.get("why", "")
        last = each["last"]
        inbox = each.get("queues", {}).get("inbox")
        tiles = ", ".join(
            f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value, _ in each.get("tiles", ())
        )
        table.add_row(
            Text(each["name"], "bold"),
            Text(condition, _CONDITIONS.get(condition, "")),
            str(each.get("view") or "–"),
            _number(last["delivered"]),
            "–" if last["latency"] is None else f"{last['latency'] * 1e3:,.2f} ms",
            _number(each.get("unsettled")),
            "–" if inbox is None else f"{inbox[0]:,}",
            Text(why or tiles),
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
