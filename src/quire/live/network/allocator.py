"""Memory of long packets, which come and go many times a second, stays with the process.

glibc returns a block above a threshold to the system as soon as it is freed, and the next one costs a page fault every 4 KiB:
some percent of the time that long runs take. The threshold follows the largest block that was freed so far, and how
much free memory is kept follows the threshold. So one block that is freed at the start is enough; other C libraries do not
mind.
"""

from __future__ import annotations

KEPT_BYTES = 2 << 20
"""A run with as many bytes as it may have, and room for it to be encoded."""


def keep_freed_memory() -> None:
    bytes(KEPT_BYTES)
