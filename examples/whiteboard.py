"""A shared whiteboard: strokes in causal order, appended to a log at every member. In one terminal each:

    python examples/whiteboard.py 0 board-0.jsonl 127.0.0.1:7000 127.0.0.1:7001
    python examples/whiteboard.py 1 board-1.jsonl 127.0.0.1:7000 127.0.0.1:7001

Type strokes like `red 10,10 20,40`. Strokes that nobody saw when drawing may come in any order, which is what makes causal
order cheap; but whoever draws over a stroke has seen it, so that in every log it comes first.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path

from terminal import lines

import quire


async def draw(group: quire.DynamicGroup) -> None:
    with suppress(quire.QuireError):  # The log's loop is told as well.
        async for line in lines():
            colour, *points = line.split() or [""]
            stroke = {"by": group.me, "colour": colour, "points": points}
            await group.multicast(json.dumps(stroke).encode() + b"\n")
        await group.close()


async def keep_log(group: quire.DynamicGroup, log: Path) -> None:
    """Append every stroke. Whole runs are written at once: no object a message, however fast they come."""
    with log.open("ab") as file:
        async for delivery in group.runs():
            file.writelines(delivery.run.payloads())
            file.flush()
            print(f"{delivery.run.count} more from {delivery.origin}", flush=True)


async def main(me: int, log: Path, members: list[str]) -> None:
    async with quire.join("whiteboard", me=me, members=members, order="causal") as group:
        print(f"Drawing on {log} with {len(members) - 1} others; end with Ctrl-D.", flush=True)
        drawing = asyncio.create_task(draw(group))
        await keep_log(group, log)
        drawing.cancel()


if __name__ == "__main__":
    try:
        asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
    except quire.QuireError as error:
        sys.exit(f"whiteboard: {error}")
