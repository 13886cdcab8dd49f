"""Finds the executions in the logs, the hosts of each, and where their records are.

A few executions become one run each. Many share one run: every host has its events of one execution after those of the previous
one, and logical times do not overlap. So happened-before within an execution is the same in the shared run, and no execution
needs its own directory, file or task.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from quire.model.errors import BadInput
from quire.pipeline.importing.gathering import Member, Part
from quire.pipeline.importing.parsing import Parsed
from quire.pipeline.importing.scratch import Scratch

HOSTS_MAX = 10_000

_Hosts = dict[str, list[Part]]


class Runs(NamedTuple):
    """The runs to be created."""

    labels: list[str]
    hosts: list[tuple[str, ...]]
    """The hosts of each run, in order of appearance."""
    members: list[list[Member]]
    """The hosts of each run that have records."""
    together: list[str]
    """The labels of the executions that share the only run; empty if each has its own."""

    def active(self, run: int) -> tuple[int, ...]:
        """The processes of a run that have records."""
        return tuple(member.process for member in self.members[run])

    def name(self, run: int) -> str:
        """The name of a run's subdirectory."""
        return f"{run + 1:04d}" if len(self.hosts) > 1 else ""


def find_runs(parsed: Sequence[Parsed], scratch: Scratch, *, delimited: bool, separate_max: int) -> Runs:
    """Group the records by execution; raises BadInput if there are too many hosts. Without records, there are no runs."""
    labels, spread = _number(parsed, delimited=delimited)
    present = np.zeros(len(labels), np.bool_)
    for result, numbers in zip(parsed, spread, strict=True):
        present[[numbers[part.execution] for part in result.slices]] = True
    kept = np.flatnonzero(present).tolist()
    rank = np.cumsum(present) - 1
    spread = [rank[numbers].tolist() if numbers else [] for numbers in spread]
    labels = [labels[number] for number in kept]
    together = labels if len(labels) > separate_max else []
    hosts = _share(parsed, spread, scratch) if together else _separate(parsed, spread, len(labels))
    most = max(map(len, hosts), default=0)
    if most > HOSTS_MAX:
        raise BadInput(f"there are {most:,} hosts; the limit is {HOSTS_MAX:,}. Is the host read from the right field?")
    members = [
        [Member(process, host, tuple(parts)) for process, (host, parts) in enumerate(its.items()) if parts] for its in hosts
    ]
    return Runs([""] if together else labels, [tuple(its) for its in hosts], members, together)


def _number(parsed: Sequence[Parsed], *, delimited: bool) -> tuple[list[str], list[list[int]]]:
    """The labels of all executions, and for each chunk the numbers of its own ones among them."""
    labels: list[str] = []
    spread: list[list[int]] = []
    if delimited:
        labels = [""]
        for result in parsed:
            spread.append([len(labels) - 1, *range(len(labels), len(labels) + len(result.executions) - 1)])
            labels += result.executions[1:]
        return labels, spread
    numbers: dict[str, int] = {}
    spread += [[numbers.setdefault(label, len(numbers)) for label in result.executions] for result in parsed]
    return list(numbers), spread


def _separate(parsed: Sequence[Parsed], spread: Sequence[Sequence[int]], count: int) -> list[_Hosts]:
    """The hosts of each execution."""
    hosts: list[_Hosts] = [{} for _ in range(count)]
    for chunk, (result, numbers) in enumerate(zip(parsed, spread, strict=True)):
        for part in sorted(result.slices, key=lambda part: part.first_line):
            of_host = hosts[numbers[part.execution]].setdefault(part.host, [])
            of_host.append(Part(chunk, part.batch, part.first_row, part.rows))
    for result, numbers in zip(parsed, spread, strict=True):
        for execution, host in result.dests:
            hosts[numbers[execution]].setdefault(host, [])
    return hosts


def _share(parsed: Sequence[Parsed], spread: Sequence[Sequence[int]], scratch: Scratch) -> list[_Hosts]:
    """The hosts of all executions together; the executions' numbers are saved for the tasks that read the chunks."""
    hosts: _Hosts = {}
    for chunk, (result, numbers) in enumerate(zip(parsed, spread, strict=True)):
        scratch.save_numbers("executions", chunk, values=np.array(numbers, np.int64))
        rows: dict[str, tuple[int, int]] = {}
        for part in sorted(result.slices, key=lambda part: part.first_line):
            rows[part.host] = part.batch, rows.get(part.host, (0, 0))[1] + part.rows
        for host, (batch, count) in rows.items():
            hosts.setdefault(host, []).append(Part(chunk, batch, 0, count))
    for host in _in_order(host for result in parsed for _, host in result.dests):
        hosts.setdefault(host, [])
    return [hosts]


def _in_order(hosts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(hosts))
