"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    name: str
    help: str
    kind: str
    value: float
    labels: Mapping[str, str]


def exposition(samples: Iterator[Sample]) -> str:
    """The samples in the text format of Prometheus; those of one name must follow each other."""
    lines: list[str] = []
    last = ""
    for sample in samples:
        if sample.name != last:
            lines += [f"# HELP {sample.name} {sample.help}", f"# TYPE {sample.name} {sample.kind}"]
            last = sample.name
        labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in sample.labels.items())
        lines.append(f"{sample.name}{{{labels}}} {sample.value:g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
