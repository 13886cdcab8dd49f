"""Live object groups: the application's API, and the role of a process in `quire run --protocol objects`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from random import Random
from types import TracebackType
from typing import Any, Unpack

import msgspec

from quire.live import clock
from quire.live.dynamic.group import DynamicGroup
from quire.live.dynamic.joining import TIMEOUT_S
from quire.live.errors import GroupClosed, GroupFailed
from quire.live.events import Listener
from quire.live.identity import identify, run_name
from quire.live.network_options import Network, NetworkOptions, takes_network_options
from quire.live.observing.observer import Observer, observer_of
from quire.live.observing.status import Status
from quire.live.recording import Recording
from quire.live.services.coroutines import LoopRuntime
from quire.live.services.nodes import Host
from quire.live.services.object_membership import ObjectMembership
from quire.live.services.object_views import ObjectViews, check_views, join_views
from quire.live.services.recorded import record_node
from quire.live.services.service import Role, Service
from quire.live.services.status import objects_status, service_metrics
from quire.live.settings import Settings, read_settings
from quire.model.errors import BadInput, QuireError
from quire.model.orders import Guarantee
from quire.objects.call import Call
from quire.objects.executor import Executor, Program
from quire.objects.placing import Placement, catalogue_of, described, objects_at
from quire.objects.record import conflicts, record
from quire.objects.workload import Aborted, ObjectWorkloadOptions, placements, random_program
from quire.protocols.node import Notice
from quire.protocols.objects.declarations import Catalogue
from quire.protocols.objects.errors import CallAborted
from quire.protocols.objects.exchange import ObjectOptions
from quire.protocols.objects.node import ObjectNode
from quire.protocols.objects.notices import Answered, CaughtUp, Refused, Returned, Started
from quire.protocols.registry import convert_options
from quire.trace.parts.description import RunIdentity

NAME = "objects"
UNKNOWN_LIFE = -1
ANSWER_BYTES_MAX = 256 << 20
"""How long an answer may be; its contents are bounded by the calls that it reports."""
AT_ONCE = 4
"""How many roots of a planned load a process has open."""


class _Shown(ObjectOptions, frozen=True, kw_only=True):
    """What members compare before they start: the options, and a digest of which objects there are and what conflicts."""

    objects: str
    views: bool


class ObjectGroup:
    """One member of a live group of objects. Use it in `async with`, which waits until all members are there. `views`: where
    the members agree who they are, so that those who are left go on without one that is lost."""

    def __init__(
        self,
        settings: Settings,
        objects: Mapping[str, Placement],
        *,
        views: DynamicGroup | None = None,
        recording: Recording | None = None,
        on_event: Listener | None = None,
        observer: Observer | None = None,
    ) -> None:
        assert isinstance(settings.options, ObjectOptions)
        self.settings = settings
        self.catalogue = catalogue_of(len(settings.members), objects)
        self.objects = objects_at(settings.me, objects)
        """This member's own copies of the objects that live here."""
        self.delivered = 0
        self.sent = 0
        self._runtime = LoopRuntime()
        self._node = node = ObjectNode(settings.me, self.catalogue, settings.options)
        self._executor = Executor(node, self.objects, self._runtime)
        # Besides its result, an answer lists what may have to be undone, its own request included.
        settings = msgspec.structs.replace(settings, packet_bytes_max=ANSWER_BYTES_MAX)
        self._host = self._runtime.host = Host(
            settings,
            node,
            self._on_notice,
            recording=recording,
            survives=views is not None,
            on_event=on_event,
            observer=observer,
        )
        self._host.observed = self
        self._host.on_ended = self._wake
        self._executor.on_wrong = self._host.fail
        self._group = views
        self._views: ObjectViews | None = None
        self._following: asyncio.Task[None] | None = None
        self._back = asyncio.Event()
        """Set when this member takes part, if it has come back; or can do so no more."""
        if views is not None:
            # Until it is known whether it comes back, nothing is said to this process.
            node.exchange.life = UNKNOWN_LIFE

    @property
    def me(self) -> int:
        return self.settings.me

    @property
    def retries(self) -> int:
        """How often a root of this member was retried."""
        return self._executor.died

    def status(self) -> Status:
        """The status of this member, as `observe` shows it."""
        return objects_status(self._host, self._executor.node, self.delivered, self.retries)

    def metrics(self) -> str:
        """This member's counters in the text format of Prometheus."""
        return service_metrics(self.status())

    async def __aenter__(self) -> ObjectGroup:
        await self._host.__aenter__()
        if self._group is not None:
            returns = self._host.returns
            if not returns:
                self._node.exchange.life = 0
            try:
                await self._group.__aenter__()
                membership = ObjectMembership(self._host, self._node)
                self._views = ObjectViews(self._group, len(self.settings.members), membership, returns=returns)
                self._following = asyncio.create_task(self._follow(self._views))
                if returns:
                    await self._until_back()
            except BaseException as error:
                await self._host.stop(str(error))
                await self._stop_following()
                raise
        return self

    async def _until_back(self) -> None:
        try:
            async with asyncio.timeout(self.settings.join_s):
                await self._back.wait()
        except TimeoutError:
            late = f"the states of its objects were not handed over within join_s ({self.settings.join_s:g} s)"
            raise GroupFailed(late) from None
        if self._host.failure is not None:
            raise self._host.failure

    def _wake(self) -> None:
        self._back.set()

    async def _follow(self, views: ObjectViews) -> None:
        try:
            await views.follow()
        except QuireError as error:
            self._host.fail(error)
            assert self._group is not None
            await self._group.__aexit__(GroupClosed)

    async def _stop_following(self) -> None:
        if self._group is not None and self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
            await self._group.__aexit__(GroupClosed)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._host.__aexit__(kind, error, trace)
        finally:
            # All members have ended, so there is no need to agree on this one's leaving.
            await self._stop_following()
            await self._runtime.stop()

    async def invoke(self, targets: str | Sequence[str], op: str, *args: Any, **kwargs: Any) -> Any:
        """Call an operation of one object, or of several, from outside; returns what `Call.invoke` gives. It is retried
        automatically when it has to give way. Raises what the call raises, and GroupFailed when the group cannot go on."""

        async def program(call: Call) -> Any:
            return await call.invoke(targets, op, *args, **kwargs)

        return await self.run(program)

    async def run(self, program: Program) -> Any:
        """Run a program that makes several calls as one tree: if it raises, what its calls did is undone, and when it
        has to give way, all of it is retried."""
        running = asyncio.ensure_future(self._executor.run(program))
        ended = asyncio.ensure_future(self._host.until_ended())
        try:
            await asyncio.wait((running, ended), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                raise self._host.failure or GroupClosed("the group of objects is closed")
            return running.result()
        finally:
            for task in (running, ended):
                task.cancel()
            with suppress(BaseException):
                await asyncio.gather(running, ended)

    def explain(self, first: tuple[int, int], second: tuple[int, int]) -> str:
        """Explain whether, and why, two messages are ordered at this member; each is given by its sender and its number."""
        return self._executor.node.explain(first, second).because

    def _on_notice(self, host: Host, notice: Notice) -> None:
        record(host, self.settings.me, notice)
        self.delivered += isinstance(notice, Started | Refused | Answered)
        if isinstance(notice, CaughtUp) and self._views is not None:
            self._views.has_all()
        elif isinstance(notice, Returned):
            self._back.set()
        self._executor.on_notice(notice)


@takes_network_options
def join_objects(
    group: str,
    *,
    me: int,
    members: Sequence[str],
    objects: Mapping[str, Placement],
    options: Mapping[str, object] | None = None,
    views: Sequence[str] | None = None,
    **network: Unpack[NetworkOptions],
) -> ObjectGroup:
    """A member of a live group of objects, to be used in `async with`. `objects` maps names to results of `place`, the same at
    all members; the other arguments are as in `join`. With `views`, further addresses, one for each member, a majority goes on
    without members that are lost: calls that wait for these raise CallFailed. Raises BadInput if the arguments are invalid and,
    on entering, if another member has other objects."""
    if not objects:
        raise BadInput("a group of objects needs at least one object")
    catalogue = catalogue_of(len(members), objects)
    plain = convert_options(NAME, ObjectOptions, options or {})
    digest = sha256(msgspec.json.encode(described(objects))).hexdigest()[:16]
    if views is not None:
        check_views(views, members)
    shown = _Shown(**msgspec.structs.asdict(plain), objects=digest, views=views is not None)
    given = Network(**({} if views is None else {"timeout_s": TIMEOUT_S}) | network)
    settings = read_settings(group, me, members, protocol=NAME, options=shown, network=given)
    if views is not None:
        settings = msgspec.structs.replace(settings, restartable=len(members))
    observer = observer_of(given)
    return ObjectGroup(
        settings,
        objects,
        views=None if views is None else join_views(group, me, views, given),
        # The others go on with what a lost member had sent them, so all of that must be in its trace.
        recording=record_node(identify_objects(settings, catalogue), me, given.trace, observer, at_once=views is not None),
        on_event=given.on_event,
        observer=observer,
    )


def identify_objects(settings: Settings, catalogue: Catalogue, load: Mapping[str, object] | None = None) -> RunIdentity:
    groups = {NAME: tuple(range(len(settings.members)))}
    promises = frozenset({Guarantee.INTEGRITY, Guarantee.AGREEMENT, Guarantee.SIGNIFICANT})
    about, restarts = {"conflicts": conflicts(catalogue)}, settings.restartable > 0
    return identify(settings, promises, groups, about=about, load=load, restarts=restarts)


def identify_run(settings: Settings, load: Mapping[str, object] | None) -> RunIdentity:
    assert isinstance(settings.options, ObjectWorkloadOptions)
    members = len(settings.members)
    return identify_objects(settings, catalogue_of(members, placements(members, settings.options)), load)


class ObjectRole(Role):
    """Starts the roots of a planned load, some at once, and serves the others' calls until all are done."""

    async def take_part(self) -> None:
        load, settings, options = self.load, self.settings, self.settings.options
        assert isinstance(options, ObjectWorkloadOptions)
        self.group = ObjectGroup(
            settings, placements(len(settings.members), options), recording=self.recording, observer=self.observer
        )
        self.aborted = 0
        roots = (load.messages or 0) if load.sends(settings.me) else 0
        random, left = Random(f"{run_name(settings, load.described())}/{settings.me}"), iter(range(roots))  # noqa: S311
        async with self.group:
            began = clock.now()
            workers = [self._work(random, left, began) for _ in range(min(AT_ONCE, roots))]
            await asyncio.gather(*workers)
        self.delivered = self.group.delivered

    async def _work(self, random: Random, left: Any, began: float) -> None:
        assert isinstance(self.settings.options, ObjectWorkloadOptions)
        for number in left:
            if self.stopping:
                return
            if self.load.rate is not None:
                await asyncio.sleep(max(0.0, began + number / self.load.rate - clock.now()))
            try:
                await self.group.run(random_program(random, self.settings.options))
            except (Aborted, CallAborted):
                self.aborted += 1
            self.sent += 1
            self.delivered = self.group.delivered

    def details(self) -> dict[str, object]:
        states = {name: vars(each) for name, each in self.group.objects.items() if name.startswith("r")}
        digest = sha256(msgspec.json.encode(states, order="sorted")).hexdigest()[:16]
        return {"roots": self.sent, "retries": self.group.retries, "aborted": self.aborted, "replicas": digest}


def summarise(reports: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Counts of all together, and whether all replicas are equal at the end."""
    counts = {name: sum(report[name] for report in reports) for name in ("roots", "retries", "aborted")}
    return {**counts, "replicas_equal": len({report["replicas"] for report in reports}) == 1}


OBJECTS = Service(
    NAME,
    "objects that call each other: only what conflicts is ordered",
    ObjectWorkloadOptions,
    ObjectRole,
    identify_run,
    messages=200,
    summarise=summarise,
)
