"""Rebuilding a unit without backups: its new primary collects what the clients know of its groups.

The register says which clients are entered in them; each of these is asked until it has testified, by which it also promises to
ignore earlier epochs. A client that is silent for too long is reported to the register, which evicts it; what it knew is gone,
and the groups that it was in are lost. When no client is left to be asked, the groups are reconstructed.
"""

from __future__ import annotations

from collections.abc import Callable

from quire.model.errors import ProtocolViolation
from quire.protocols.node import Send
from quire.protocols.sequencing import packets as inner
from quire.protocols.sequencing.contexts import Context, merge
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import REGISTER, Configuration
from quire.protocols.sequencing.failover.options import SurvivingOptions
from quire.protocols.sequencing.failover.rebuilt import begin, over, rebuild
from quire.protocols.sequencing.requests import WAIT_TICKS_MAX
from quire.protocols.sequencing.sequencer import Sequencer


class Rebuilding:
    """The rebuilding of one unit, in one epoch."""

    def __init__(self, found: Configuration, register: int, options: SurvivingOptions) -> None:
        self.lost: tuple[str, ...] = ()
        self._found = found
        self._register = register
        self._options = options
        self._witnesses: wire.Witnesses | None = None
        self._testimonies: dict[str, dict[int, wire.Testimony]] = {}
        self._mentioned: Context = {}
        self._ticks = 0
        self._ask_at = 0
        self._wait = 1

    def begin(self) -> list[Send]:
        return [self._ask_register()]

    def _ask_register(self) -> Send:
        return Send(wire.AskWitnesses(self._found.unit, self._found.epoch), (self._register,))

    def repeat(self) -> list[Send]:
        """Called once per tick: ask again, at growing intervals, and report clients that are silent for too long."""
        self._ticks += 1
        effects = [self._ask_register()]
        if self._ticks >= self._ask_at:
            self._wait = min(2 * self._wait, WAIT_TICKS_MAX)
            self._ask_at = self._ticks + self._wait
            effects += self._ask()
        if self._ticks >= self._options.silent_ticks:
            effects += [effect for client in self._unheard() for effect in self.suspect(client)]
        return effects

    def suspect(self, client: int) -> list[Send]:
        found = self._found
        return [Send(wire.Letter(REGISTER, found.unit, found.epoch, inner.Suspect(client)), (self._register,))]

    def witnessed(self, packet: wire.Witnesses) -> list[Send]:
        """The register says which clients may know something."""
        new = self._witnesses is None
        self._witnesses = packet
        return self._ask() if new else []

    def testify(self, client: int, told: wire.Testimony) -> None:
        """A client reports what it knows. Raises ProtocolViolation if that is impossible."""
        if wrong := _wrong(told):
            raise ProtocolViolation(client, wrong)
        self._testimonies.setdefault(told.group, {})[client] = told
        self._mentioned = merge(self._mentioned, told.mentioned)

    def _unheard(self) -> dict[int, list[str]]:
        """The clients that have not reported yet, each with its groups."""
        if self._witnesses is None:
            return {}
        unheard: dict[int, list[str]] = {}
        gone = {*self._witnesses.evicted}
        for group, clients in self._witnesses.groups.items():
            if gone.isdisjoint(clients):
                for client in {*clients} - self._testimonies.get(group, {}).keys():
                    unheard.setdefault(client, []).append(group)
        return unheard

    def _ask(self) -> list[Send]:
        found = self._found
        return [
            Send(wire.Rebuild(found.unit, found.epoch, found.life, tuple(sorted(groups))), (client,))
            for client, groups in sorted(self._unheard().items())
        ]

    def completed(self, make: Callable[[], Sequencer]) -> Sequencer | None:
        """The rebuilt sequencer, once every client that can be heard has been heard."""
        witnesses = self._witnesses
        if witnesses is None or self._unheard():
            return None
        sequencer, lost = make(), list[str]()
        for group, clients in witnesses.groups.items():
            testimonies = self._testimonies.get(group, {})
            state = rebuild(group, self._found.life, clients, testimonies, self._mentioned.get(group, 0))
            if state is None or not state.is_sound():
                lost.append(group)
                continue
            sequencer.forgetting.update({(group, client): req for client, req in over(state, testimonies, clients).items()})
            begin(state)
            sequencer.groups[group] = state
            sequencer.founded.add(group)
        sequencer.evicted.update(witnesses.evicted)
        sequencer.moves.settled = witnesses.settled
        self.lost = tuple(sorted(lost))
        return sequencer


def _wrong(told: wire.Testimony) -> str | None:
    sound = all(event.group == told.group and event.remembered is not None and event.is_sound() for event in told.kept)
    return None if sound else f"it says of {told.group!r} what cannot have been numbered"
