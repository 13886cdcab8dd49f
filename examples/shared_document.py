"""A shared document whose paragraphs are objects, with a replica at every member. In one terminal each:

    python examples/shared_document.py 0 127.0.0.1:7000 127.0.0.1:7001
    python examples/shared_document.py 1 127.0.0.1:7000 127.0.0.1:7001

Type `write 2 Some text`, `append 2 and more`, `like 2` or `show`. Edits of one paragraph conflict, so everybody sees them in
one order; edits of different paragraphs, and likes, do not, and wait for nobody. The document is shown at the end.

With three or more members and, behind their addresses, `--views` and as many others, the document outlives whoever is killed.
"""

from __future__ import annotations

import asyncio
import sys

from terminal import lines

import quire

PARAGRAPHS = 5


class Paragraph(quire.Object):
    conflicts = (("write", "write"), ("write", "append"), ("append", "append"))
    compatible = (("like", "like"), ("like", "write"), ("like", "append"))

    def __init__(self) -> None:
        self.text = ""
        self.likes = 0

    @quire.operation
    async def write(self, call: quire.Call, text: str) -> str:
        self.text = text
        return self.text

    @quire.operation
    async def append(self, call: quire.Call, text: str) -> str:
        self.text = f"{self.text} {text}".strip()
        return self.text

    @quire.operation
    async def like(self, call: quire.Call) -> int:
        self.likes += 1
        return self.likes


def show(group: quire.ObjectGroup) -> None:
    for name, paragraph in group.objects.items():
        assert isinstance(paragraph, Paragraph)
        print(f"{name}: {paragraph.text} ({paragraph.likes} likes)", flush=True)


async def edit(group: quire.ObjectGroup) -> None:
    async for line in lines():
        command, _, rest = line.partition(" ")
        number, _, text = rest.partition(" ")
        if command == "show":
            show(group)
            continue
        try:
            arguments = () if command == "like" else (text,)
            print("now:", await group.invoke(f"paragraph {number}", command, *arguments), flush=True)
        except (quire.BadInput, quire.CallFailed) as error:
            print(error, flush=True)


async def main(me: int, addresses: list[str]) -> None:
    at = addresses.index("--views") if "--views" in addresses else len(addresses)
    members, views, timeout_s = addresses[:at], addresses[at + 1 :] or None, 3 if "--views" in addresses else 30
    everywhere = range(len(members))
    document = {f"paragraph {number}": quire.place(Paragraph, *everywhere) for number in range(PARAGRAPHS)}
    joining = quire.join_objects("document", me=me, members=members, objects=document, views=views, timeout_s=timeout_s)
    async with joining as group:
        print(f"Writing with {len(members) - 1} others; end with Ctrl-D.", flush=True)
        await edit(group)
    show(group)


if __name__ == "__main__":
    try:
        asyncio.run(main(int(sys.argv[1]), sys.argv[2:]))
    except quire.QuireError as error:
        sys.exit(f"shared_document: {error}")
