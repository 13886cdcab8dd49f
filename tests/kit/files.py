"""What a directory holds."""

from __future__ import annotations

from pathlib import Path


def content(directory: Path) -> dict[str, bytes]:
    """Every file below it, by its path from there."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}
