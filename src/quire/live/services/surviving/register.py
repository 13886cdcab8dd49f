"""The register as a replicated object: every sequencer has a copy, and all copies execute the same commands in one order.

The caller of a command gets the register's answers, and sends them to their recipients. If they are lost, because the caller
crashes, the recipients ask again.
"""

from __future__ import annotations

from collections.abc import Callable

from quire.model.packets import Packet
from quire.protocols.node import Effects, Send
from quire.protocols.sequencing.failover import Register, SurvivingOptions
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import REGISTER
from quire.protocols.sequencing.failover.register_state import captured, restore
from quire.replicated.base import Replicated
from quire.replicated.calls import command
from quire.wire.frames import PacketCodec

Said = list[tuple[bytes, list[int]]]
"""Packets, and the addresses of their recipients."""

QUESTIONS: PacketCodec[Packet] = PacketCodec(Register.packets)
ANSWERS: PacketCodec[Packet] = PacketCodec((wire.Letter, wire.Live, wire.Configured, wire.Witnesses))


class _Copy:
    """Cache of the register that a state decodes to, so that it need not be decoded for every command."""

    def __init__(self, make: Callable[[], Register]) -> None:
        self.state = b""
        self._make = make
        self._register = make()

    def of(self, state: bytes) -> Register:
        if state is not self.state:
            self._register = self._make()
            restore(self._register, state)
            self.state = state
        return self._register


class RegisterObject(Replicated):
    """Made by `register_object`. The replicated state is an encoded register; the register itself is derived from it."""

    state: bytes

    def begin(self, make: Callable[[], Register]) -> None:
        """Set, at this process, how an empty register is made."""
        self._copy = _Copy(make)

    def register(self) -> Register:
        """As of the last command that was executed here. It must not be changed."""
        return self._copy.of(self.state)

    @command
    def take(self, source: int, packet: bytes) -> Said:
        """A packet for the register has come from this address."""
        return self._step(lambda register, now: register.receive(now, source, QUESTIONS.decode(packet)))

    @command
    def tick(self) -> Said:
        """Time has passed."""
        return self._step(lambda register, now: register.wake(now))

    def _step(self, step: Callable[[Register, int], Effects]) -> Said:
        register = self.register()
        # If this raises, the cached register may have changed though the state has not.
        self._copy.state = b""
        effects = step(register, int(self.context.now * 1e9))
        self.state = self._copy.state = captured(register)
        sends = [effect for effect in effects if isinstance(effect, Send)]
        # Every process sees in its own copy which process runs which unit.
        return [(ANSWERS.encode(each.packet), list(each.to)) for each in sends if not isinstance(each.packet, wire.Configured)]


def register_object(processes: int, options: SurvivingOptions) -> RegisterObject:
    """The empty register of a service with so many sequencers."""

    def make() -> Register:
        return Register(REGISTER, range(processes), range(processes), options)

    made = RegisterObject(state=captured(make()))
    made.begin(make)
    return made
