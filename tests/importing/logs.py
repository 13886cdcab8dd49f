"""Random executions as other systems would log them."""

from __future__ import annotations

import json
import random
from typing import NamedTuple


class Logged(NamedTuple):
    """An event: its host, its vector clock, and what was said."""

    host: str
    clock: dict[str, int]
    text: str


def random_log(rng: random.Random, hosts: list[str]) -> list[Logged]:
    """Hosts that hear from each other now and then, in an order that puts causes first."""
    clocks: dict[str, dict[str, int]] = {host: {} for host in hosts}
    log = []
    for number in range(rng.randint(1, 30)):
        host = rng.choice(hosts)
        if rng.random() < 0.5:
            for name, count in clocks[rng.choice(hosts)].items():
                clocks[host][name] = max(clocks[host].get(name, 0), count)
        clocks[host][host] = clocks[host].get(host, 0) + 1
        log.append(Logged(host, dict(clocks[host]), f"event {number}"))
    return log


def happened_before(one: Logged, other: Logged) -> bool:
    """By the clocks themselves."""
    return one is not other and other.clock.get(one.host, 0) >= one.clock[one.host]


def two_lines(log: list[Logged]) -> str:
    return "".join(f"{event.text}\n{event.host} {json.dumps(event.clock)}\n" for event in log)


def clock_first(log: list[Logged]) -> str:
    return "".join(f"{event.host} {json.dumps(event.clock)}\n{event.text}\n" for event in log)


def as_jsonl(log: list[Logged]) -> str:
    return "".join(json.dumps({"host": event.host, "clock": event.clock, "event": event.text}) + "\n" for event in log)
