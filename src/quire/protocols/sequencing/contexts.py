"""Contexts (sparse vector clocks): how far a process has seen each group.

A context has a number for each group that matters and nothing for the others. A group without an entry counts as below 0, the
number at which every group starts, so a missing entry never makes anybody wait.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

Context = dict[str, int]

ENTRY_BYTES = 16
"""What an entry takes besides the name of its group, about."""


def merge(one: Mapping[str, int], other: Mapping[str, int]) -> Context:
    """The later of both for each group."""
    merged = dict(one)
    for group, number in other.items():
        if merged.get(group, -1) < number:
            merged[group] = number
    return merged


def restrict(context: Mapping[str, int], groups: Container[str]) -> Context:
    """What the context says of these groups."""
    return {group: number for group, number in context.items() if group in groups}


def at_most(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    """Whether `one` has seen nothing that `other` has not."""
    return all(number <= other.get(group, -1) for group, number in one.items())


def prune(context: Mapping[str, int], stable: Mapping[str, int]) -> Context:
    """Without what every member of its group has delivered, for which nobody will ever wait."""
    return {group: number for group, number in context.items() if number > stable.get(group, -1)}


def weight(context: Mapping[str, int]) -> int:
    """About how many bytes a context takes."""
    return sum(map(len, context), ENTRY_BYTES * len(context)) if context else 0
