"""Keeps the freed memory of long packets in the process, so that allocating the next ones causes no page faults.

glibc returns a block above a threshold to the system as soon as it is freed, and the next one costs a page fault every 4 KiB:
some percent of the time that long runs take. The threshold follows the largest block that was freed so far, and how much free
memory is kept follows the threshold. So freeing one large block at the start is enough; it does no harm with other C libraries.
"""

from __future__ import annotations

KEPT_BYTES = 2 << 20
"""The size of the longest run, and room to encode it."""


def keep_freed_memory() -> None:
    bytes(KEPT_BYTES)
