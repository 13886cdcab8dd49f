"""Hierarchies whose members change: agents are lost and followed by the next, and members join, leave and move."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

import quire
from quire.live.runs.collecting import collect
from quire.live.runs.plan import Plan
from quire.pipeline.auditing.auditor import audit_here
from tests.live.dynamic.kit import Member, crash, places, run, talk, together
from tests.live.dynamic.process import Started

HOMES = {"a": "north", "b": "north", "c": "north", "d": "south", "e": "south"}
ADDRESSES = [f"127.0.0.1:{7000 + number}" for number in range(3)]


def site(name: str, cluster: str, **chosen: Any) -> quire.DynamicGroup:
    chosen.setdefault("transport", "memory")
    return quire.join("test", me=name, protocol="hierarchy", cluster=cluster, **chosen)


def founders(**chosen: Any) -> list[quire.DynamicGroup]:
    where = places("memory", HOMES)
    return [site(name, cluster, members=where, **chosen) for name, cluster in HOMES.items()]


def agents(member: Member) -> dict[str, str]:
    assert member.group.view is not None
    return member.group.view.agents


def test_agents_are_the_seniors_of_their_clusters_and_the_next_follows_when_one_is_lost() -> None:
    async def main() -> None:
        async with together(founders()) as members:
            e = members["e"]
            assert agents(e) == {"north": "a", "south": "d"}
            stop = asyncio.Event()
            talking = asyncio.ensure_future(talk([members[name] for name in "bce"], stop))
            await e.until(lambda member: len(member.payloads) > 50)
            await crash(members["a"].group)
            await crash(members["d"].group)
            for name in "bce":
                await members[name].is_in("b", "c", "e")
                assert agents(members[name]) == {"north": "b", "south": "e"}
            await members["c"].group.execute(b"from north")
            await e.has(b"from north")
            stop.set()
            counts = await talking
            last = [f"{name}:{count - 1}".encode() for name, count in counts.items()]
            for name in "bce":
                await members[name].has(*last)
                assert len(members[name].order) == len(set(members[name].order))
            assert sorted(members["b"].order) == sorted(members["c"].order) == sorted(e.order)

    run("memory", main())


def test_a_member_joins_a_cluster_moves_to_another_and_leaves_and_answers_come_after_questions() -> None:
    async def main() -> None:
        async with together(founders()) as members:
            contact = str(members["b"].group.settings.address)
            f = site("f", "south", at="127.0.0.1:7500", contact=[contact])
            async with together([f]) as more:
                await f.execute(b"question")
                await members["b"].has(b"question")
                await members["b"].group.execute(b"answer")
                await members["e"].has(b"answer")
                moving = asyncio.gather(f.move("north"), members["d"].group.move("west/upper"))
                await members["c"].group.multicast_many([b"meanwhile"] * 100)
                await moving
                assert f.view is not None
                assert dict(zip(f.view.members, f.view.clusters, strict=True)) == HOMES | {"d": "west/upper", "f": "north"}
                assert f.view.agents == {"north": "a", "west/upper": "d", "south": "e"}
                await f.move("north")  # It is there.
                await f.execute(b"moved")
                for name in HOMES:
                    await members[name].has(b"moved")
                    order = members[name].payloads
                    assert order.index(b"question") < order.index(b"answer")
                    assert order.count(b"meanwhile") == 100
                await f.leave()
                await more["f"].reading
                for name in HOMES:
                    await members[name].is_in(*HOMES)
                with pytest.raises(quire.GroupClosed):
                    await f.move("south")

    run("memory", main())


def test_an_agent_that_reads_nothing_is_excluded_when_others_wait_for_it_and_its_cluster_is_not() -> None:
    async def main() -> None:
        groups = {group.me: group for group in founders()}
        await asyncio.gather(*(group.__aenter__() for group in groups.values()))
        readers = {name: Member(group) for name, group in groups.items() if name != "d"}
        groups["d"]._inbox._messages_max = 0
        await groups["a"].multicast(b"the last that it takes")
        await readers["e"].has(b"the last that it takes")
        await groups["b"].execute(b"has to go by way of it")
        stop = asyncio.Event()
        talking = asyncio.ensure_future(talk([readers["a"]], stop, pause_s=0.5))
        coming = [asyncio.ensure_future(reader.has(b"has to go by way of it")) for reader in readers.values()]
        _, late = await asyncio.wait(coming, timeout=30)
        assert not late
        for reader in readers.values():
            await reader.is_in("a", "b", "c", "e")
            assert not reader.of(quire.Excluded)
        assert agents(readers["e"]) == {"north": "a", "south": "e"}
        stop.set()
        await talking
        for group in groups.values():
            await crash(group)

    run("memory", main())


def test_whoever_is_started_again_with_its_journal_comes_back_in_the_cluster_to_which_it_moved(tmp_path: Path) -> None:
    where = places("tcp", HOMES)

    def again(name: str) -> quire.DynamicGroup:
        return site(name, HOMES[name], members=where, journal=tmp_path / name, transport="tcp")

    async def main() -> None:
        async with together(map(again, HOMES)) as members:
            c = members["c"].group
            await c.move("south")
            await c.execute(b"moved")
            await members["a"].has(b"moved")
            await crash(c)
            await members["a"].is_in("a", "b", "d", "e")
            async with together([again("c")]) as back:
                await members["a"].is_in(*HOMES)
                view = members["a"].group.view
                assert view is not None
                assert view.clusters[view.members.index("c")] == "south"
                await back["c"].group.execute(b"back")
                await members["a"].has(b"back")

    run("tcp", main())


def test_a_hierarchy_is_fixed_unless_something_is_asked_for_that_needs_views() -> None:
    def given(**chosen: Any) -> object:
        settings: dict[str, Any] = {"me": 0, "members": ADDRESSES, "protocol": "hierarchy"} | chosen
        return quire.join("test", **settings)

    assert isinstance(given(), quire.Group)
    for wish in ({"cluster": "a"}, {"journal": "j"}, {"delivery": "uniform"}, {"rejoin": False}, {"weights": {"0": 2}}):
        assert isinstance(given(**wish), quire.DynamicGroup), wish
    named = dict(zip("abc", ADDRESSES, strict=True))
    assert isinstance(given(me="a", members=named), quire.DynamicGroup)
    assert isinstance(given(me="d", members=None, at="127.0.0.1:1", contact=ADDRESSES), quire.DynamicGroup)


def test_a_file_of_a_hierarchy_says_by_its_clusters_its_journal_or_its_delivery_that_members_may_change() -> None:
    plan = Plan(members=tuple(ADDRESSES), protocol="hierarchy")
    assert not plan.is_dynamic()
    for wish in ({"clusters": ("a", "b", "")}, {"journal": "j"}, {"delivery": "fast"}):
        assert msgspec.structs.replace(plan, **wish).is_dynamic()
    clustered = msgspec.structs.replace(plan, clusters=("a", "b/c", ""))
    assert [clustered.dynamic_settings(me).cluster for me in range(3)] == ["a", "b/c", ""]


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"cluster": "a/"}, "one / between a cluster and one inside it, not 'a/'"),
        ({"cluster": "a b"}, "without spaces or commas"),
        ({"cluster": "x" * 65}, "1 to 64 printable characters"),
        ({"cluster": "a", "protocol": "fifo"}, "fifo knows no clusters; choose the protocol hierarchy"),
        ({"cluster": "a", "options": {"description": "x"}}, "where members change, each names its cluster instead"),
    ],
)
def test_clusters_that_make_no_sense_are_refused_in_one_sentence(chosen: dict[str, Any], sentence: str) -> None:
    settings: dict[str, Any] = {"me": 0, "members": ADDRESSES, "protocol": "hierarchy"} | chosen
    with pytest.raises(quire.BadInput, match=sentence):
        quire.join("test", **settings)


def test_only_members_of_hierarchies_can_move() -> None:
    async def main() -> None:
        where = places("memory", "ab")
        groups = [quire.join("test", me=name, members=where, order="total", transport="memory") for name in "ab"]
        async with together(groups) as members:
            with pytest.raises(quire.BadInput, match="single-phase knows no clusters"):
                await members["a"].group.move("north")

    run("memory", main())


def test_processes_go_on_when_an_agent_is_killed_while_others_join_and_move_and_the_audit_agrees(tmp_path: Path) -> None:
    where = places("tcp", [*HOMES, "f"])
    common: dict[str, Any] = {"protocol": "hierarchy", "trace": str(tmp_path / "parts"), "timeout_s": 5}
    named = {name: where[name] for name in HOMES}
    with ExitStack() as ending:

        def start(name: str, cluster: str, **how: Any) -> Started:
            one = Started(me=name, cluster=cluster, **common, **how)
            ending.callback(one.kill)
            return one

        started = {name: start(name, cluster, members=named) for name, cluster in HOMES.items()}
        for one in started.values():
            one.acks(20)
        started.pop("a").kill()
        for one in started.values():
            one.is_in("b", "c", "d", "e")
            assert one.all("agents")[-1] == {"north": "b", "south": "d"}
            one.acks(20)
        f = started["f"] = start("f", "south", at=where["f"], contact=[where["d"]])
        f.acks(20)
        started["c"].tell("move south")
        started["c"].until(lambda one: one.all("moved") == ["south"])
        started["d"].kill()
        del started["d"]
        for one in started.values():
            one.is_in("b", "c", "e", "f")
            assert one.all("agents")[-1] == {"north": "b", "south": "c"}
            one.acks(20)
        started.pop("e").end("leave")
        last = [one.all("acked")[-1] for one in started.values()]
        for one in started.values():
            one.is_in("b", "c", "f")
            one.until(lambda one: set(last) <= set(one.delivered))
        started["b"].end("close")
        for name in "cf":
            started[name].end("close")
    summary = collect(tmp_path / "parts", tmp_path / "run")
    audit = audit_here(tmp_path / "run")
    assert {name: audit.checks[name].because for name in audit.expected if audit.checks[name].verdict != "holds"} == {}
    assert {"causal", "virtual-synchrony", "once"} <= set(audit.expected)
    assert len(summary.crashed) == 2
