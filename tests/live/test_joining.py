"""How a group comes together: how long members wait for each other, and what they are told meanwhile."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.live import Event, Group, MemberUnreachable, join
from quire.live.network import gathering
from quire.live.network_options import JOIN_S, TIMEOUT_S
from quire.live.runs.plan import Plan
from quire.live.services.sequencers import connect, serve
from quire.live.settings import Settings
from tests.kit.virtual_time import run_in_virtual_time
from tests.live.running import in_memory, run
from tests.live.test_member import quire as command
from tests.live.test_member import write_plan

Addresses = Callable[[int], list[str]]


class Account(quire.Object):
    """An object of which nothing is asked here."""


def as_group(where: list[str], **chosen: Any) -> Any:
    return join("test", me=0, members=where, protocol="two-phase", **chosen)


def as_objects(where: list[str], **chosen: Any) -> Any:
    return quire.join_objects("test", me=0, members=where, objects={"account": quire.place(Account, 0)}, **chosen)


def as_store(where: list[str], **chosen: Any) -> Any:
    return quire.join_store("test", me=0, members=where, replicas=1, **chosen)


def as_sequencer(where: list[str], **chosen: Any) -> Any:
    return serve(where, 0, **chosen)


WAYS_IN = [as_group, as_objects, as_store, as_sequencer]


@pytest.mark.parametrize("way_in", WAYS_IN)
def test_every_way_in_and_the_file_have_the_same_defaults(way_in: Callable[..., Any]) -> None:
    where = ["127.0.0.1:7000", "127.0.0.1:7001"]
    settings: Settings = way_in(where).settings
    planned = Plan(members=tuple(where), protocol="two-phase").settings(0)
    assert (settings.timeout_s, settings.join_s) == (planned.timeout_s, planned.join_s) == (TIMEOUT_S, JOIN_S)


@pytest.mark.parametrize("way_in", WAYS_IN)
def test_whoever_waits_in_vain_is_told_who_is_missing_and_how_to_wait_longer(
    addresses: Addresses, way_in: Callable[..., Any]
) -> None:
    where = addresses(3)

    async def main() -> None:
        with pytest.raises(MemberUnreachable) as caught:
            async with way_in(where, join_s=0.3):
                pass
        text = str(caught.value)
        assert caught.value.member == 1
        assert f"member 1 ({where[1]}) has been unreachable for 0." in text
        assert f"member 2 ({where[2]}) is missing too" in text
        assert text.endswith("all members must join within join_s (0.3 s)")

    run(main())


def test_a_member_that_is_started_later_by_hand_is_waited_for() -> None:
    async def main() -> None:
        one, other = (in_memory(me, timeout_s=0.2, join_s=JOIN_S) for me in range(2))
        joining = asyncio.ensure_future(one.__aenter__())
        await asyncio.sleep(JOIN_S / 2)
        assert not joining.done(), "members may be silent for 0.2 s, but take longer to come"
        async with other:
            await joining
            await asyncio.gather(one.close(), other.close())

    run_in_virtual_time(main())


def test_a_client_waits_for_sequencers_as_members_do_for_each_other() -> None:
    where = "127.0.0.1:7000"
    assert (connect(where).settings.timeout_s, connect(where).settings.join_s) == (TIMEOUT_S, JOIN_S)

    async def main() -> None:
        with pytest.raises(MemberUnreachable, match=r"all members must join within join_s \(0\.3 s\)") as caught:
            async with connect(where, join_s=0.3, transport="memory"):
                pass
        assert caught.value.member == 0
        client = connect(where, timeout_s=1, transport="memory")
        connecting = asyncio.ensure_future(client.__aenter__())
        await asyncio.sleep(JOIN_S / 2)
        assert not connecting.done(), "sequencers may be silent for a second, but take longer to come"
        async with serve([where], timeout_s=1, transport="memory"):
            await connecting
            await client.__aexit__(None, None, None)

    run_in_virtual_time(main())


def test_whoever_waits_is_told_every_few_seconds_for_whom(
    addresses: Addresses, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(gathering, "REMIND_S", 0.05)
    where, events = addresses(3), list[Event]()

    async def main() -> None:
        reminded = asyncio.Event()

        def listen(event: Event) -> None:
            events.append(event)
            if sum(one.kind == "awaited" for one in events) == 3:
                reminded.set()

        groups = [
            join("test", me=me, members=where, protocol="two-phase", on_event=listen if me == 1 else None) for me in range(3)
        ]
        first = asyncio.ensure_future(groups[1].__aenter__())
        await reminded.wait()
        others = [asyncio.ensure_future(groups[me].__aenter__()) for me in (0, 2)]
        await asyncio.gather(first, *others)
        await asyncio.gather(*map(Group.close, groups))

    run(main())
    awaited = [event for event in events if event.kind == "awaited"]
    assert awaited[0].peers == (0, 2)
    assert awaited[0].for_s < awaited[1].for_s < awaited[2].for_s
    assert "cannot connect to it" in awaited[2].why
    lines = [record for record in caplog.records if "event=awaited" in record.getMessage()]
    assert lines[0].levelname == "WARNING", "it is seen even where nobody has set up any logging"
    assert "group=test member=1 event=awaited peer=0,2 for_s=0.1" in lines[0].getMessage()


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (['protocol = "two-phase"'], r"member 1 \(.*\) has been unreachable for 0\.\d s: .* within join_s \(0\.2 s\)"),
        ([], r"not become a member within join_s \(0\.2 s\): waiting for 1 \(127.*\), 2 \(127.*\)"),
    ],
    ids=["fixed", "changing"],
)
def test_the_command_line_says_how_long_to_wait_too(tmp_path: Path, lines: list[str], sentence: str) -> None:
    result = command("member", write_plan(tmp_path, "messages = 1", "join_s = 60", *lines), "--me", "0", "--join", "0.2")
    assert result.exit_code == 3
    assert re.search(sentence, result.stderr)
