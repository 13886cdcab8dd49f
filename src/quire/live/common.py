"""Where the common part of what the members of a group delivered ends, when the group has ended by a loss."""

from __future__ import annotations

import msgspec

from quire.model.messages import Message, MessageId


class Common(msgspec.Struct, frozen=True):
    """What is known to be delivered at every survivor, and in the order that the group keeps.

    `through[origin]`: of the messages of that member, all those with a number below this one are delivered at every one of the
    `survivors` that they were for; each survivor's application is given them before it is told of the loss. `message in common`
    asks for one message. It is what this member knows from what the others have told it, so that it never says too much; it may
    say too little, and then survivors differ in what they know to be common. Where the group is totally ordered, these messages
    are the beginning of what each survivor delivers.
    """

    survivors: tuple[int, ...] = ()
    through: tuple[int, ...] = ()

    def __contains__(self, message: Message | MessageId) -> bool:
        return message.origin < len(self.through) and message.seq < self.through[message.origin]
