"""The data that the page receives: the current state, as one value of bounded size, and once, when it opens, the history."""

from __future__ import annotations

import time
from typing import Any

from quire.watch.diagram import can_be_drawn
from quire.watch.member import WatchedProcess
from quire.watch.scene import Scene
from quire.watch.verdict import LiveFindings

HAPPENINGS_SHOWN = 60
VIEWS_SHOWN = 40


def snapshot(scene: Scene, verdict: LiveFindings | None) -> dict[str, Any]:
    processes = list(scene.processes.values())
    return {
        "now": time.time(),
        "began": scene.began_ns / 1e9,
        "title": _title(processes),
        "processes": [_process(scene, each) for each in processes],
        "waits": _waits(processes),
        "views": [
            {"number": number, "members": members, "at": at_ns / 1e9}
            for number, members, at_ns in sorted(scene.incidents.views())[-VIEWS_SHOWN:]
        ],
        "incidents": [
            {"at": each.time_ns / 1e9, "kind": each.kind, "text": each.text, "view": each.view}
            for each in scene.incidents.latest(HAPPENINGS_SHOWN)
        ],
        "verdict": None if verdict is None else verdict.shown(),
        "diagram": any(map(can_be_drawn, processes)),
    }


def history(scene: Scene) -> dict[str, Any]:
    """The time series of every process, for a page that has just been opened."""
    return {
        process.key: {
            measure: {"fine": list(series.fine), "coarse": list(series.coarse)} for measure, series in process.series.items()
        }
        for process in scene.processes.values()
    }


def _title(processes: list[WatchedProcess]) -> dict[str, str]:
    groups, protocols = dict[str, None](), dict[str, None]()
    for each in processes:
        if each.status is not None:
            groups[each.status.group] = protocols[each.status.protocol] = None
        elif each.described is not None:
            groups[each.described.identity.group] = protocols[each.described.identity.protocol] = None
    return {"group": ", ".join(groups) or "nothing yet", "protocol": ", ".join(protocols)}


def _process(scene: Scene, process: WatchedProcess) -> dict[str, Any]:
    status = process.status
    shown: dict[str, Any] = {
        "key": process.key,
        "name": process.name,
        "missing": process.missing,
        "view": process.view,
        "last": {measure: series.last for measure, series in process.series.items()},
        "latencies": {
            scene.name_of(origin): sorted(taken)[len(taken) // 2] / 1e9
            for origin, taken in process.recent.latencies_ns.items()
            if taken
        },
    }
    if status is not None:
        shown |= {
            "kind": status.kind,
            "condition": status.condition,
            "why": status.why,
            "view": None if status.view is None else status.view.number,
            "sent": status.sent,
            "unsettled": status.unsettled,
            "delivered": sum(status.delivered.values()) if status.kind == "group" or status.delivered else None,
            "queues": {name: [queue.messages, queue.bytes, queue.messages_max] for name, queue in status.queues.items()},
            "links": [
                [link.peer, link.connected, link.suspected, link.unread, link.unacknowledged_bytes, link.silent_s]
                for link in status.links
            ],
            "waiting": [[each.origin, each.first, each.count, each.waits_for, each.because] for each in status.waiting],
            "waiting_in_all": status.waiting_in_all,
            "journal": None if status.journal is None else [status.journal.batches, status.journal.bytes],
            "tiles": [[tile.name, tile.value, tile.note] for tile in status.tiles],
        }
    return shown


def _waits(processes: list[WatchedProcess]) -> list[dict[str, Any]]:
    """Which processes wait for which: one arrow per pair, with the first reason and how many messages wait."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for process in processes:
        if process.missing:
            continue
        for held in process.lasting:
            for name in held.waits_for:
                one = found.setdefault(
                    (process.name, name), {"from": process.name, "to": name, "because": held.because, "count": 0}
                )
                one["count"] += held.count
    return list(found.values())
