"""The tables in a terminal, however little room that has."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from quire.watch.scene import Scene
from quire.watch.snapshot import snapshot
from quire.watch.text import screen
from tests.watch.test_bounds import status_of

WHY = "the application has not read 131128 delivered messages (4196064 bytes); nothing more is received until it does"


def drawn(width: int) -> list[str]:
    scene = Scene()
    for name in ("m0", "m1"):
        scene.add(name)
        status = msgspec.structs.replace(status_of(name), waiting=(), condition="unread" if name == "m1" else "running")
        scene.stands(name, msgspec.structs.replace(status, why=WHY if name == "m1" else ""))
    scene.add("m2")
    scene.missing("m2", "m2: Connection refused")
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(screen(snapshot(scene, None), width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (80, ["process", "state", "view", "delivered/s", "latency", "not delivered", "unread"]),
        (60, ["process", "state", "view", "delivered/s", "latency", "not delivered"]),
        (50, ["process", "state", "view", "delivered/s", "latency"]),
        (40, ["process", "state", "view", "delivered/s"]),
        (20, ["process", "state"]),
    ],
)
def test_a_narrow_terminal_has_fewer_columns_and_none_is_cut(width: int, columns: list[str]) -> None:
    lines = drawn(width)
    heading = next(line for line in lines if line.startswith("process"))
    assert heading.replace("not delivered", "not_delivered").split() == [name.replace(" ", "_") for name in columns]
    assert "missing" in next(line for line in lines if line.startswith("m2"))
    words = " ".join(" ".join(lines).split())
    assert all(word in words for word in WHY.split())
    assert max(map(len, lines)) <= width
