"""Validation of messages from peers: refuses those that no correct peer sends."""

from __future__ import annotations

from quire.model.errors import BadInput, ProtocolViolation
from quire.protocols.objects.declarations import Catalogue
from quire.protocols.objects.packets import AnyContent, Part, Release, Request


def check(me: int, source: int, content: AnyContent, catalogue: Catalogue) -> None:
    """Raise ProtocolViolation if `source` cannot have sent this to `me`."""
    if content.number < 0:
        raise ProtocolViolation(source, "numbers start at 0")
    if isinstance(content, Release | Part):
        return
    if content.sender.member != source or content.sends < 1:
        raise ProtocolViolation(source, "it sent a message in another member's name")
    if not all(0 <= instance.member < catalogue.members for instance, _ in content.past):
        raise ProtocolViolation(source, "its vector names a member that does not exist")
    if isinstance(content, Request):
        try:
            catalogue.check_call(content.targets, content.op)
        except BadInput as error:
            raise ProtocolViolation(source, str(error)) from None
        if not any(me in catalogue.find(target).members for target in content.targets):
            raise ProtocolViolation(source, "it called an object that does not live here")
        if not content.chain or content.chain[-1] != content.sender:
            raise ProtocolViolation(source, "its chain of callers does not end in itself")
    elif content.to.member != me:
        raise ProtocolViolation(source, "it answered an instance that is not here")
