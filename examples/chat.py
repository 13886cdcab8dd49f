"""A terminal chat in total order: everybody sees the same lines in the same order. In one terminal each:

    python examples/chat.py 0 127.0.0.1:7000 127.0.0.1:7001
    python examples/chat.py 1 127.0.0.1:7000 127.0.0.1:7001

Type lines; /quit ends the chat for all, once everybody has seen everything that was said. If some are
lost, the others go on, as long as a majority is there.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

from terminal import lines

import quire


async def speak(group: quire.DynamicGroup) -> None:
    with suppress(quire.QuireError):  # Whoever listens is told as well, if somebody has quit or is lost.
        async for line in lines():
            if line == "/quit":
                break
            await group.multicast(line.encode())
        await group.close()


async def chat(me: int, members: list[str]) -> None:
    async with quire.join("chat", me=me, members=members, order="total") as group:
        print(f"You are {me}. Everybody is here; /quit to end.", flush=True)
        speaking = asyncio.create_task(speak(group))
        async for message in group:  # Ends when the group does.
            print(f"{message.origin}: {message.payload.decode(errors='replace')}", flush=True)
        speaking.cancel()
    print("The chat is over; nothing that was said is lost.")


if __name__ == "__main__":
    try:
        asyncio.run(chat(int(sys.argv[1]), sys.argv[2:]))
    except quire.QuireError as error:
        sys.exit(f"chat: {error}")
