"""A group's state at one member: its commands are sent as messages of the group, and executed as they are delivered.

In a group with state the first byte of a message says whether it is the application's own, a command, or a mark: a message
that does nothing, and tells its sender that everything before it has been executed here. Runs hold messages of the application
or of the state, never both, so that whole runs go one way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from quire.live import clock
from quire.live.errors import GroupFailed, PeerMisbehaved
from quire.live.groups.awaited import Awaited
from quire.live.groups.reads import Reads
from quire.live.settings import Settings
from quire.model.errors import BadInput, ProtocolViolation
from quire.model.messages import pack
from quire.model.orders import Guarantee, implied_by
from quire.model.payloads import Messages
from quire.protocols import registry
from quire.protocols.contract import Deliver
from quire.replicated.base import Replicated
from quire.replicated.home import State
from quire.replicated.machine import Machine

OF_THE_STATE: tuple[int, ...] = ()
"""In place of a run's recipients: the run is for the state, at all members."""

MESSAGE = b"\x00"
"""The first byte of a message of the application."""
_MARK = b"\x02"

R = TypeVar("R")
AnyState = State | Mapping[str, State] | None
Finish = Callable[[Any], Any]


def read_state(settings: Settings, state: AnyState) -> tuple[Machine | None, Settings]:
    """The state machine for a group's state, and the settings with its name; raises BadInput where copies could differ."""
    if state is None:
        return None, settings
    promises = registry.find(settings.protocol).protocol.promises
    if Guarantee.TOTAL not in implied_by(promises):
        raise BadInput(f"a state needs a total order, which {settings.protocol} does not keep; join with order='total'")
    machine = Machine(state)
    return machine, msgspec.structs.replace(settings, state=machine.beginning())


def marked(messages: Messages) -> Messages:
    """Messages of the application as they are sent in a group with state."""
    payloads = [MESSAGE + payload for payload in messages.payloads]
    return Messages(payloads, [length + 1 for length in messages.lengths], messages.size + len(payloads))


class Commands:
    def __init__(
        self,
        machine: Machine,
        me: int | str,
        accept: Callable[[bytes], int],
        send_soon: Callable[[], None],
        fail: Callable[[GroupFailed], None],
        wall_ns: Callable[[], int] = clock.wall_ns,
        read_round: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """`accept` takes a message and returns its number, and `send_soon` sends what was accepted; `fail` ends the group for
        this member. `read_round`: the round that reads share, where it is not done by a mark."""
        self.machine = machine
        self._me = me
        self._accept = accept
        self._send_soon = send_soon
        self._fail = fail
        self._wall_ns = wall_ns
        self._awaited: Awaited[Finish] = Awaited()
        self._reads = Reads(read_round or self.read_round)
        self._over = False
        self._why: Exception | None = None
        for name, state in machine.states.items():
            if isinstance(state, Replicated):
                state._bind(_Home(self, name))

    def submit(self, name: str, body: bytes, finish: Finish) -> asyncio.Future[Any]:
        """Have every member execute this; the future holds what `finish` makes of the result here."""
        return self._send(self.machine.command(name, body, self._wall_ns()), finish)

    def _send(self, payload: bytes, finish: Finish) -> asyncio.Future[Any]:
        if self._why is not None:
            raise self._why
        # A message that no other can precede any more is delivered while it is being sent.
        future = self._awaited.add(self._accept(payload), finish)
        self._send_soon()
        return future

    def now(self) -> float:
        """Seconds since 1970, as commands are stamped."""
        return self._wall_ns() / 1e9

    def read_barrier(self) -> asyncio.Future[None]:
        """Done when everything that was executed anywhere before this call is executed here."""
        return self._reads.barrier()

    async def read_round(self) -> None:
        """One round for all reads that wait when it begins: a mark of this member is ordered after everything that was
        delivered anywhere before."""
        await self._send(_MARK, _as_it_is)

    def take(self, delivery: Deliver) -> Deliver | None:
        """Execute a delivered run if it is of the state, and give it back as the application sent it if it is not."""
        run = delivery.run
        payloads = list(run.payloads())
        if payloads[0][:1] == MESSAGE:
            body = pack([payload[1:] for payload in payloads])
            return Deliver(msgspec.structs.replace(run, body=body, skip=0), delivery.position)
        for number, payload in enumerate(payloads, run.first):
            self.execute(run.origin, number, payload, own=run.origin == self._me)
        return None

    def execute(self, origin: int, number: int, payload: bytes, *, own: bool) -> None:
        """Execute a delivered command. `own`: a caller here may wait for its result."""
        if self._over:
            return
        result, raised = None, None
        try:
            if payload != _MARK:
                result = self.machine.execute(origin, number, payload)
        except ProtocolViolation as error:
            self._give_up(PeerMisbehaved(origin, f"{error}; run the same version everywhere"))
            return
        except (MemoryError, RecursionError) as error:
            # The others may have had enough memory, or stack, for it.
            what = f"member {self._me} failed to execute command {origin}:{number}, which others may have executed: {error!r}"
            self._give_up(GroupFailed(what))
            return
        except Exception as error:  # noqa: BLE001 - It is for whoever called.
            raised = error
        except BaseException:
            self._over = True
            raise
        if own and (awaited := self._awaited.take(number)) is not None:
            _settle(*awaited, result, raised)

    def _give_up(self, error: GroupFailed) -> None:
        """Execute nothing more: this copy may differ from the others from now on."""
        self._over = True
        self._fail(error)

    def will_not_be_told(self, number: int, why: Exception) -> None:
        """The results of commands up to this number will not be known here."""
        self._awaited.fail(why, number)

    def end(self, why: Exception) -> None:
        """The group has ended: all futures that wait fail with `why`, and the objects may be used elsewhere."""
        if self._why is not None:
            return
        self._over, self._why = True, why
        self._awaited.fail(why)
        for state in self.machine.states.values():
            if isinstance(state, Replicated):
                state._release(why)


class _Home:
    """The connection of one replicated object to its group."""

    def __init__(self, commands: Commands, name: str) -> None:
        self._commands = commands
        self._name = name

    def submit(self, body: bytes, finish: Callable[[Any], R]) -> asyncio.Future[R]:
        return self._commands.submit(self._name, body, finish)

    def now(self) -> float:
        return self._commands.now()

    def read_barrier(self) -> asyncio.Future[None]:
        return self._commands.read_barrier()


def _as_it_is(result: object) -> object:
    return result


def _settle(future: asyncio.Future[Any], finish: Finish, result: object, raised: Exception | None) -> None:
    if raised is not None:
        future.set_exception(raised)
        return
    try:
        future.set_result(finish(result))
    except TypeError as error:
        future.set_exception(error)
