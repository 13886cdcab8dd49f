"""How far all survivors of a failed fixed group are known to have delivered the same messages."""

from __future__ import annotations

import msgspec

from quire.model.messages import Message, MessageId


class Common(msgspec.Struct, frozen=True):
    """The messages that are known to be delivered at every survivor, in the order that the group guarantees.

    `through[origin]`: all messages of that member with a lower number are delivered at every one of the `survivors` that they
    were for; each survivor's application is given them before it is told of the loss. `message in common` asks for one message.
    This is what this member has learned from the others, so it never includes too much; it may include too little, and then
    survivors differ in what they know to be common. Where the order is total, these messages are a prefix of what each
    survivor delivers.
    """

    survivors: tuple[int, ...] = ()
    through: tuple[int, ...] = ()

    def __contains__(self, message: Message | MessageId) -> bool:
        return message.origin < len(self.through) and message.seq < self.through[message.origin]
