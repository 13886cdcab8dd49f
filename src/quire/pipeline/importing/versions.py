"""Derives the version order of keys from a transaction history, without clocks.

A read of a list returns everything appended before, in order, so every list read of a key is a prefix of the longest one.
Appends that nobody read came later, in unknown order. A register reveals less: a transaction that read it and then wrote it
wrote a later version. If that does not give a single chain, the order is not known, and the audit says so.

The result is a set of sequences: the versions of a key within a sequence are in that order. A key may have several sequences,
which branch off from one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import msgspec

from quire.model.errors import BadInput

WRITES = ("w", "append")
Step = tuple[str, str, Any]
"""The operation (r, w or append), the key, and the value."""


class Operation(msgspec.Struct, frozen=True):
    """A transaction that has ended, or whose outcome is unknown: its reads and writes, in order."""

    number: int
    process: str
    type: str
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        return f"T{self.number}"

    @property
    def keys(self) -> dict[str, str]:
        """The key of each version that it wrote."""
        return {version_of(key, value): key for did, key, value in self.steps if did in WRITES}


class Placed(NamedTuple):
    """A version in one of the sequences of its key: the sequence, the version, the operation that reveals it, and the
    position."""

    sequence: int
    version: str
    told_by: int
    at: int


def version_of(key: str, value: Any) -> str:
    return f"{key}={value}"


def find_writers(operations: Iterable[Operation], name: str) -> dict[str, Operation]:
    """The writer of each version. Raises BadInput if there are two, because then a value does not identify its writer."""
    writers: dict[str, Operation] = {}
    for operation in operations:
        for version in operation.keys:
            other = writers.setdefault(version, operation)
            if other is not operation:
                raise BadInput(
                    f"{name} operations {other.number} and {operation.number} both write {version}: "
                    "each value of a key may be written only once, so that it tells who wrote it"
                )
    return writers


def seen_of(operations: Iterable[Operation], versions: Set[str]) -> set[str]:
    """Which of these versions were read by some operation."""
    if not versions:
        return set()
    return {version for operation in operations for version in _read_by(operation) if version in versions}


def _read_by(operation: Operation) -> Iterator[str]:
    if operation.type == "ok":
        for did, key, value in operation.steps:
            if did == "r" and value is not None:
                yield from (version_of(key, each) for each in (value if isinstance(value, list) else [value]))


def order_of_versions(
    operations: Sequence[Operation], writers: Mapping[str, Operation], name: str
) -> Iterator[Placed]:  # fmt: skip
    """Every sequence of versions that the history reveals."""
    at = 0
    lists = _longest_lists(operations, name)
    branches = _branches_of_lists(operations, writers, lists) | _branches_of_registers(operations, lists)
    for sequences in branches.values():
        for number, (told_by, sequence) in enumerate(sequences):
            for version in sequence:
                if version in writers:
                    at += 1
                    yield Placed(number, version, told_by, at)


Sequences = list[tuple[int, list[str]]]
"""The sequences of one key: the operation that reveals each, and its versions."""


def _longest_lists(operations: Iterable[Operation], name: str) -> dict[str, tuple[int, list[Any]]]:
    """For each key with list values, the longest list that was read; all others must be prefixes of it."""
    lists = [
        (key, value, operation.number)
        for operation in operations
        if operation.type == "ok"
        for did, key, value in operation.steps
        if did == "r" and isinstance(value, list)
    ]
    longest: dict[str, tuple[int, list[Any]]] = {}
    for key, value, number in lists:
        if key not in longest or len(value) > len(longest[key][1]):
            longest[key] = (number, value)
    for key, value, number in lists:
        other, whole = longest[key]
        if whole[: len(value)] != value:
            raise BadInput(
                f"{name} operations {number} and {other} read lists of {key} of which neither begins the other: "
                "no order of its versions explains both"
            )
    return longest


def _branches_of_lists(
    operations: Iterable[Operation], writers: Mapping[str, Operation], lists: Mapping[str, tuple[int, list[Any]]]
) -> dict[str, Sequences]:
    """The versions that were read, in order; and for each version that nobody read, a branch at their end."""
    found: dict[str, Sequences] = {}
    for key, (number, values) in lists.items():
        found[key] = [(number, [version_of(key, value) for value in values])]
    read = {version for sequences in found.values() for _, sequence in sequences for version in sequence}
    for operation in operations:
        # Only a transaction's last append counts.
        last = {key: version_of(key, value) for did, key, value in operation.steps if did == "append"}
        for key, version in last.items():
            if operation.type != "ok" or version in read:
                continue
            known = found.setdefault(key, [(operation.number, [])])
            # The last version that was read and not aborted.
            end = next((each for each in reversed(known[0][1]) if each in writers and writers[each].type != "fail"), None)
            known.append((operation.number, [version] if end is None else [end, version]))
    return found


_BRANCHES_MAX = 8
"""With so many versions of unknown order, the order of a register is not known, whatever others there are."""


def _branches_of_registers(operations: Sequence[Operation], lists: Mapping[str, object]) -> dict[str, Sequences]:
    """Chains of versions, each written by a transaction that had read the previous one."""
    followers: dict[str, dict[str | None, list[tuple[int, str]]]] = {}
    for operation in operations:
        if operation.type != "ok":
            continue
        before: dict[str, str | None] = {}
        last: dict[str, str] = {}
        for did, key, value in operation.steps:
            if did == "r" and key not in last and key not in lists:
                before.setdefault(key, None if value is None else version_of(key, value))
            elif did == "w":
                last[key] = version_of(key, value)
        for key, version in last.items():
            if key in before:
                followers.setdefault(key, {}).setdefault(before[key], []).append((operation.number, version))
    found = {key: _chains(followers[key]) for key in followers}
    placed = {version for sequences in found.values() for _, sequence in sequences for version in sequence}
    for operation in operations:
        # Whatever else is not known of a version, it came after the initial state.
        last = {key: version_of(key, value) for did, key, value in operation.steps if did == "w" and key not in lists}
        for key, version in last.items():
            sequences = found.setdefault(key, [])
            if operation.type == "ok" and version not in placed and len(sequences) < _BRANCHES_MAX:
                sequences.append((operation.number, [version]))
    return found


def _chains(followers: Mapping[str | None, list[tuple[int, str]]]) -> Sequences:
    """Combine the pairs of a version and its successor into chains, one per branch."""
    written = {version for versions in followers.values() for _, version in versions}
    found: Sequences = []
    taken: set[str] = set()
    # Start from versions without a predecessor; whatever is left is a cycle, and is emitted as one.
    roots: list[str | None] = [root for root in followers if root not in written]
    for root in [*roots, *followers]:
        for number, version in followers[root]:
            sequence = [] if root is None else [root]
            told_by, following = number, version
            while following not in taken:
                taken.add(following)
                sequence.append(following)
                further = [each for each in followers.get(following, ()) if each[1] not in taken]
                if not further:
                    break
                told_by, following = further[0]
            if len(sequence) > (root is not None):
                found.append((told_by, sequence))
    return found
