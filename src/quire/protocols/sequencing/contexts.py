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
    """For each group, the larger number of the two contexts."""
    merged = dict(one)
    for group, number in other.items():
        if merged.get(group, -1) < number:
            merged[group] = number
    return merged


def restrict(context: Mapping[str, int], groups: Container[str]) -> Context:
    """The part of the context that is about these groups."""
    return {group: number for group, number in context.items() if group in groups}


def at_most(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    """Whether `one` has seen nothing that `other` has not seen."""
    return all(number <= other.get(group, -1) for group, number in one.items())


def prune(context: Mapping[str, int], stable: Mapping[str, int]) -> Context:
    """The context without entries for what every member of a group has delivered: nobody will wait for that."""
    return {group: number for group, number in context.items() if number > stable.get(group, -1)}


def weight(context: Mapping[str, int]) -> int:
    """The approximate size of a context in bytes."""
    return sum(map(len, context), ENTRY_BYTES * len(context)) if context else 0
