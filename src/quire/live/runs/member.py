"""The process of one member of a live group: joins, sends what its plan says, delivers everything, and writes its trace.

`python -m quire.live.runs.member PLAN ME PARTS [JOURNAL]` is what a fleet starts. It tells its progress as lines of JSON on its
standard output, and drains and ends on SIGINT, on SIGTERM, and when its standard input ends, so that it never outlives whoever
started it. With a journal it is a member of a group that has faults, and ends only when it is told to.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from quire.live.runs.dynamic_member import DynamicMember
from quire.live.runs.exchange import Exchange, PlannedLoad
from quire.live.runs.fixed_member import FixedMember
from quire.live.runs.plan import Plan
from quire.live.runs.progress import Ended, Progress, Running, Standing, Tell
from quire.live.runs.taking_part import take_part_in
from quire.live.services.registry import SERVICES
from quire.model.errors import BadInput, QuireError

Result = TypeVar("Result")


def make_member(plan: Plan, me: int, parts: Path | None, tell: Tell, exchange: Exchange) -> FixedMember | DynamicMember:
    """The member that takes part in the planned group; raises BadInput where the plan is invalid."""
    if plan.is_dynamic():
        return DynamicMember(plan, me, parts, tell, exchange)
    return FixedMember(plan, me, parts, tell, exchange)


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on the fastest event loop that is installed."""
    try:
        import uvloop
    except ImportError:  # Not made for every system.
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Have SIGINT and SIGTERM drain instead of kill, where the system can."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, stop)


def stop_with_parent(stop: Callable[[], None]) -> None:
    """Stop at the end of standard input, which comes when the parent process has ended, however it did."""
    loop = asyncio.get_running_loop()

    def watch() -> None:
        while os.read(0, 1024):
            pass
        with suppress(RuntimeError):  # The loop may be closed by now.
            loop.call_soon_threadsafe(stop)

    threading.Thread(target=watch, name="quire-parent", daemon=True).start()


def say(said: Progress | Standing | Running | Ended) -> None:
    """Send a report to the process that started this one."""
    with suppress(BrokenPipeError):
        os.write(1, msgspec.json.encode(said) + b"\n")


async def take_part(plan: Plan, me: int, parts: Path | None, tell: Tell, ready: Callable[[Callable[[], None]], None]) -> Ended:
    """Take part in what is planned, as a member of a group or as a process of a service. `ready` is called once, with a
    function that makes it end early."""
    service = SERVICES.get(plan.protocol or "")
    if service is not None:
        return await take_part_in(service, plan, me, parts, tell, ready)
    member = make_member(plan, me, parts, tell, PlannedLoad(plan, me))
    ready(member.stop)
    return await member.take_part()


async def _take_part_until_told(plan: Plan, me: int, parts: Path, journal: Path) -> Ended:
    member = DynamicMember(plan, me, parts, say, PlannedLoad(plan, me), journal, until_told=True)
    _ready(member.stop)
    return await member.take_part()


def _ready(stop: Callable[[], None]) -> None:
    stop_on_signals(stop)
    say(Progress(0, 0))  # From now on it can be asked to stop.
    stop_with_parent(stop)


def main() -> None:
    """Take part in a planned load as a process of a fleet."""
    plan_file, me, parts, *journal = sys.argv[1:]
    try:
        plan = msgspec.json.decode(Path(plan_file).read_bytes(), type=Plan)
        if journal:
            ended = run(_take_part_until_told(plan, int(me), Path(parts), Path(*journal)))
        else:
            ended = run(take_part(plan, int(me), Path(parts), say, _ready))
    except QuireError as error:
        ended = Ended(0, 0, error=str(error), bad_input=isinstance(error, BadInput))
    say(ended)
    sys.exit(1 if ended.error else 0)


if __name__ == "__main__":
    main()
