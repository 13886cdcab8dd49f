"""Random plans for every way in which a store must work."""

from __future__ import annotations

from random import Random

import msgspec

from quire.protocols.transactions.placement import Placement
from quire.protocols.transactions.settings import MILLISECOND, Settings
from quire.simulation.network import Split
from tests.transactions.stores import Plan, Program

RESTARTS = ("intact", "forgetful", "blank")
IMPATIENT = Settings(repeat_ns=30 * MILLISECOND, lease_ns=60 * MILLISECOND, gossip_ns=40 * MILLISECOND)
FORGETFUL = msgspec.structs.replace(IMPATIENT, gossip_ns=10 * MILLISECOND, remembered=1)

READS: Program = [("r", "k0")]
READS_AND_WRITES: Program = [("r", "k1"), ("w", "k0")]


def random_program(random: Random, keys: int) -> Program:
    return [("w" if random.random() < 0.5 else "r", f"k{random.randrange(keys)}") for _ in range(3)]


def full(random: Random) -> Plan:
    """Five transactions of three operations on two or three keys that every replica holds."""
    replicas, keys, clients = random.randint(2, 4), random.randint(2, 3), random.randint(2, 5)
    programs: list[list[Program]] = [[] for _ in range(clients)]
    for number in range(5):
        programs[number % clients].append(random_program(random, keys))
    return Plan(replicas=replicas, clients=clients, placement=Placement(replicas), programs=programs)


def partial(random: Random) -> Plan:
    plan = full(random)
    return msgspec.structs.replace(plan, placement=Placement(plan.replicas, random.randint(1, plan.replicas)))


def lossy(random: Random) -> Plan:
    """A bad network, and as many as nine tries for each program."""
    plan = random.choice((full, partial))(random)
    return msgspec.structs.replace(plan, loss=0.2, duplicate=0.2, tries=9)


def stable(random: Random) -> Plan:
    """Requests wait in the order layer, and some are omitted; clients share the replicas' processors or not."""
    plan = random.choice((full, partial, lossy))(random)
    return msgspec.structs.replace(
        plan, settings=Settings(order="stable"), co_located=plan.clients <= plan.replicas and random.random() < 0.5
    )


def crowded(random: Random) -> Plan:
    """One key and mostly writes in the order layer: much is omitted, some of it for the sake of what aborts."""
    clients = replicas = 4
    programs: list[list[Program]] = [
        [[("w" if random.random() < 0.7 else "r", f"k{random.randrange(2)}") for _ in range(3)]] for _ in range(clients)
    ]
    settings = Settings(order="stable", beat_ns=5 * MILLISECOND)
    return Plan(
        replicas=replicas, clients=clients, placement=Placement(replicas), programs=programs, settings=settings, co_located=True
    )


def quorum(random: Random) -> Plan:
    plan = random.choice((full, partial, lossy))(random)
    return msgspec.structs.replace(plan, replication="majority", settings=IMPATIENT)


def crashing(random: Random) -> Plan:
    """Clients vanish, replicas crash one at a time and come back in every way, sometimes the network splits."""
    replicas, clients, keys = random.randint(3, 5), random.randint(2, 4), random.randint(1, 3)
    crashes = [
        (random.randrange(replicas), at_ms(random, 300), at_ms(random, 200), random.choice(RESTARTS))
        for _ in range(random.randint(0, 3))
    ]
    start = at_ms(random, 200)
    cut = tuple(random.sample(range(replicas), (replicas - 1) // 2))
    rest = tuple(address for address in range(replicas + clients) if address not in cut)
    return Plan(
        replication="majority",
        replicas=replicas,
        clients=clients,
        placement=Placement(replicas, None if random.random() < 0.7 else random.randint(3, replicas)),
        programs=[[random_program(random, keys) for _ in range(2)] for _ in range(clients)],
        tries=9,
        loss=random.choice((0.0, 0.1, 0.2)),
        duplicate=random.choice((0.0, 0.2)),
        settings=IMPATIENT,
        client_crashes={replicas + each: at_ms(random, 150) for each in range(clients) if random.random() < 0.4},
        replica_crashes=crashes,
        splits=[Split((cut, rest), start, start + at_ms(random, 200))] if random.random() < 0.3 else [],
    )


def restless(random: Random) -> Plan:
    """One key, and replicas that keep crashing: what is rare elsewhere is common here."""
    plan = crashing(random)
    replicas, clients = 3, 3
    crashes = [(random.randrange(replicas), at_ms(random, 600), at_ms(random, 30), random.choice(RESTARTS)) for _ in range(12)]
    return msgspec.structs.replace(
        plan,
        replicas=replicas,
        clients=clients,
        placement=Placement(replicas),
        programs=[[random_program(random, 1) for _ in range(3)] for _ in range(clients)],
        client_crashes={replicas + each: at_ms(random, 150) for each in range(clients) if random.random() < 0.3},
        replica_crashes=crashes,
        splits=[],
    )


def reborn(random: Random) -> Plan:
    """Some read a key while others, that began before, are still to write it; now and then a client cannot hear of a replica
    that it came too late; and again and again two replicas are gone for a moment, one after the other: the first may
    forget who read, the second forgets everything."""
    replicas, clients = 3, 6
    cuts = [(random.randrange(replicas), replicas + random.randrange(clients), at_ms(random, 400)) for _ in range(150)]
    crashes = []
    for _ in range(40):
        start, (first, second) = at_ms(random, 400), random.sample(range(replicas), 2)
        how = random.choice(("intact", "forgetful"))
        crashes += [(first, start, at_ms(random, 2), how), (second, start + at_ms(random, 6), at_ms(random, 2), "blank")]
    return Plan(
        replication="majority",
        replicas=replicas,
        clients=clients,
        placement=Placement(replicas),
        programs=[[random.choice((READS, READS_AND_WRITES)) for _ in range(4)] for _ in range(clients)],
        tries=9,
        loss=0.1,
        duplicate=0.1,
        settings=msgspec.structs.replace(IMPATIENT, cap_step=1),
        replica_crashes=crashes,
        splits=[Split(((replica,), (client,)), start, start + at_ms(random, 40)) for replica, client, start in cuts],
    )


def kept(random: Random) -> Plan:
    """Replicas have disks, and crash at any time, in any number and all at once; now and then one loses its disk."""
    plan = random.choice((crashing, restless))(random)
    kinds = ("intact", "intact", "all", "blank")
    crashes = [
        (random.randrange(plan.replicas), at_ms(random, 600), at_ms(random, 60), random.choice(kinds))
        for _ in range(random.randint(1, 10))
    ]
    settings = random.choice((IMPATIENT, FORGETFUL, msgspec.structs.replace(IMPATIENT, cap_step=1)))
    return msgspec.structs.replace(plan, replica_crashes=crashes, settings=settings)


def forgetting(random: Random) -> Plan:
    """Replicas remember next to nothing, so that most of what comes late is of transactions that are forgotten."""
    plan = random.choice((crashing, restless, quorum))(random)
    programs = [[random_program(random, 2) for _ in range(random.choice((3, 6)))] for _ in range(plan.clients)]
    return msgspec.structs.replace(plan, programs=programs, tries=9, duplicate=0.3, settings=FORGETFUL)


def at_ms(random: Random, most: int) -> int:
    return int(random.random() * most * MILLISECOND)
