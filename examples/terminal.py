"""Lines of standard input for the examples, read without keeping the group waiting."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator


async def lines() -> AsyncIterator[str]:
    """Each line that is typed or piped in, until it ends."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        yield line.decode(errors="replace").rstrip("\n")
