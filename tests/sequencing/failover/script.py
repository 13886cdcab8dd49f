"""The specification's step scripts on the production nodes: names and packets of one in those of the other."""

from __future__ import annotations

from typing import Any

from quire.model.messages import Run, pack
from quire.model.packets import Packet
from quire.protocols.node import Effects, Send
from quire.protocols.sequencing import packets as inner
from quire.protocols.sequencing.events import KINDS, Event
from quire.protocols.sequencing.failover import Register, SequencerProcess, SurvivingClient
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import CLIENT, REGISTER, Configuration, Name
from quire.protocols.sequencing.failover.options import SurvivingOptions
from quire.protocols.sequencing.failover.unit_state import captured
from quire.protocols.sequencing.sequencer import NEVER, Sequencer
from quire.protocols.sequencing.state import GroupState

FIRST_PROCESS = 10
INFINITY = 1_000_000_000
"""What the scripts write for the request of who makes no more."""


def address(name: str) -> int:
    """p0 … are clients, N0 … processes, and S0 … units, named as the processes."""
    return int(name[1:]) + (FIRST_PROCESS if name[0] in "NS" else 0)


class Script:
    def __init__(self, case: dict[str, Any], order: str = "total") -> None:
        self.options = SurvivingOptions(order=order, backups=1, balance_ticks=0)  # type: ignore[arg-type]
        addresses = range(FIRST_PROCESS, FIRST_PROCESS + 4)
        units = [address(unit) for unit in case["configuration"]]
        self.register = Register(20, addresses, units, self.options)
        self.processes = {
            each: SequencerProcess(Name(each, 0), addresses, units, 20, self.options) for each in addresses
        }  # fmt: skip
        self.clients = {me: SurvivingClient(me, addresses, units, (20,), self.options) for me in range(3)}
        self.packets: dict[tuple[Any, ...], Packet] = {}
        """What was sent among copies, by what the scripts say of it."""
        self._begin(case)

    def _begin(self, case: dict[str, Any]) -> None:
        """In the configurations of the script, all of them live."""
        succession = self.register.succession
        for each in self.processes:
            succession.arrived(Name(each, 0))
        succession.configurations.clear()
        for unit, (epoch, primary, backups) in case["configuration"].items():
            names = [Name(address(each), 0) for each in (primary, *backups)]
            found = Configuration(address(unit), epoch, names[0], tuple(names[1:]), fresh=True)
            succession.configurations[found.unit] = found
            for name in names:
                process = self.processes[name.address]
                process.routes.learn(0, (found,))
                process.replicas[found.unit].configure(0, found)
            sequencer = self.unit(unit, primary)
            for group, members in case["groups"].items():
                if case["location"][group] == unit:
                    inside = dict.fromkeys(map(address, members), 0)
                    sequencer.groups[group] = GroupState(group, members=inside, reached=dict(inside))
            snapshot = wire.Snapshot(found.unit, epoch, 0, 0, 1, captured(sequencer))
            for name in names[1:]:
                self.processes[name.address].receive(0, names[0].address, snapshot)
                self.processes[names[0].address].receive(0, name.address, wire.Recorded(found.unit, epoch, 0, 0))
            self.register.receive(0, names[0].address, wire.InSync(found.unit, epoch))
            self.processes[names[0].address].receive(0, 20, wire.Live(found.unit, epoch))
        for process in self.processes.values():
            process.routes.learn(1, tuple(succession.configurations.values()))
        for group, unit in case["location"].items():
            self.register.directory.locations[group] = address(unit)
            self.register.directory.entries[group] = dict.fromkeys(map(address, case["groups"][group]), 0)
            self.register.directory.over[group] = {}
            for client in self.clients.values():
                client.locations[group] = address(unit)
                if f"p{client.address}" in case["groups"][group]:
                    client.hold.delivered[group] = 0

    def unit(self, unit: str, process: str) -> Sequencer:
        sequencer = self.processes[address(process)].replicas[address(unit)].sequencer
        assert sequencer is not None
        return sequencer

    def step(self, at: str, given: Any) -> Effects:
        """Let somebody take an input."""
        node: Any = self.register if at == "REG" else self.clients[address(at)] if at[0] == "p" else self.processes[address(at)]
        effects: Effects = node.receive(0, *self._input(given))
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.packet, wire.Record | wire.Snapshot):
                packet = effect.packet
                self.packets[packet.name, packet.unit, packet.epoch, packet.index] = packet
        return effects

    def _input(self, given: Any) -> tuple[int, Packet]:
        match given:
            case ["Q", unit, ["DOMC", group, who, [_, _, counter], _, _]]:
                me = address(who)
                packet = inner.DoMulticast(group, me, counter, counter, Run(me, counter, 1, pack([b"m"])))
                return me, wire.Letter(address(unit), CLIENT, 0, packet)
            case ["REPL", unit, epoch, sender, index, _]:
                return address(sender), self.packets["REPL", address(unit), epoch, index]
            case ["SNAP", unit, epoch, sender, [index, *_]]:
                return address(sender), self.packets["SNAP", address(unit), epoch, index]
            case ["RACK", unit, epoch, sender, _, index]:
                return address(sender), wire.Recorded(address(unit), epoch, 0, index)
            case ["INSYNC", unit, epoch, sender]:
                return address(sender), wire.InSync(address(unit), epoch)
            case ["LIVE", unit, epoch]:
                return 20, wire.Live(address(unit), epoch)
            case ["CONF", found]:
                told = tuple(_configuration(unit, *each) for unit, each in found.items())
                for each in told:  # The script's register has said so.
                    if each.epoch > self.register.succession.configurations[each.unit].epoch:
                        self.register.succession.configurations[each.unit] = each
                return 20, wire.Configured(9, told)
            case ["R", unit, ["EVSET", clients]]:
                return 20, wire.Letter(address(unit), REGISTER, 0, inner.Evict(tuple(map(address, clients))))
            case ["U", unit, epoch, sender, ["EV", event], _]:
                return address(sender), wire.Letter(CLIENT, address(unit), epoch, _event(event))
        raise ValueError(given)


def _configuration(unit: str, epoch: int, primary: str, backups: list[str]) -> Configuration:
    return Configuration(address(unit), epoch, Name(address(primary), 0), tuple(Name(address(each), 0) for each in backups))


def _event(event: dict[str, Any]) -> Event:
    who = address(event["who"])
    run = Run(who, event["id"][2], 1, pack([b"m"]))
    return Event(event["G"], event["seq"], KINDS.index(event["kind"]), who, -1, run, event["tot"], event["dep"])


def shown(state: GroupState, suspended: Any = None) -> dict[str, Any]:
    """A group's state as the scripts write it."""
    return {
        "seq": state.seq,
        "members": [f"p{client}" for client in state.members],
        "departing": {f"p{client}": number for client, number in state.departing.items()},
        "history": list(state.history),
        "dedup": [
            [[f"p{client}", state.group, counter], seq]
            for client, numbers in state.senders.items()
            for counter, (_, seq, _) in numbers.window.items()
        ],
        "req": {f"p{client}": INFINITY if req == NEVER else req for client, req in state.requests.items()},
        "suspended": suspended,
    }


def outputs(effects: Effects) -> list[tuple[str, Any]]:
    """What leaves, without what is said to the register of clients that are gone, which the scripts leave out."""
    found: list[tuple[str, Any]] = []
    for effect in effects:
        if not isinstance(effect, Send):
            continue
        packet, to = effect.packet, effect.to
        if isinstance(packet, wire.Letter):
            if not isinstance(packet.packet, inner.Forget | inner.EvictDone | inner.LeftAck | inner.Fetch | inner.Poll):
                found += [(_named(each), _letter(packet)) for each in to]
        elif not isinstance(packet, wire.Where):
            found += [(_named(each), _packet(packet)) for each in to]
    return found


def _named(address: int) -> str:
    return "REG" if address == 20 else f"p{address}" if address < FIRST_PROCESS else f"N{address - FIRST_PROCESS}"


def _letter(letter: wire.Letter) -> Any:
    packet = letter.packet
    match packet:
        case Event():
            return [letter.epoch, "EV", packet.group, packet.seq, KINDS[packet.kind], packet.who, packet.tot]
        case inner.Ack():
            return [letter.epoch, "ACC", packet.group, packet.counter, packet.seq]
        case inner.Expelled():
            return [letter.epoch, "EVICTED"]
    return [letter.epoch, packet.name]


def _packet(packet: Packet) -> Any:
    match packet:
        case wire.Record() | wire.Snapshot() | wire.Recorded():
            return [packet.name, packet.epoch, packet.index]
        case wire.InSync() | wire.Live():
            return [packet.name, packet.epoch]
    return [packet.name]


def expected(out: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """The same of what a script says."""
    found: list[tuple[str, Any]] = []
    for each in out:
        match each["msg"]:
            case ["REPL", _, epoch, _, index, _]:
                found.append((each["to"], ["REPL", epoch, index]))
            case ["SNAP", _, epoch, _, [index, *_]]:
                found.append((each["to"], ["SNAP", epoch, index]))
            case ["RACK", _, epoch, _, _, index]:
                found.append((each["to"], ["RACK", epoch, index]))
            case ["INSYNC", _, epoch, _] | ["LIVE", _, epoch]:
                found.append((each["to"], [each["msg"][0], epoch]))
            case ["CONF", _]:
                found.append((each["to"], ["CONF"]))
            case ["U", _, epoch, _, ["EV", event], _]:
                numbers = [event["G"], event["seq"], event["kind"], address(event["who"]), event["tot"]]
                found.append((each["to"], [epoch, "EV", *numbers]))
            case ["U", _, epoch, _, ["ACC", group, [_, _, counter], seq], _]:
                found.append((each["to"], [epoch, "ACC", group, counter, seq]))
            case ["U", _, epoch, _, ["EVICTED"], _]:
                found.append((each["to"], [epoch, "EVICTED"]))
    return found
