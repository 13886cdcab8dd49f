"""The handshake: authenticates the peer of a connection before anything else that it sends is parsed.

Each side sends one hello of fixed size. With a group secret, each then proves that it knows the secret, by an HMAC over both
hellos and its own role; the nonces in them are fresh, so a replayed proof is worthless, and the role keeps a proof from being
reflected to its sender. From the same exchange each direction derives its own key, with which every later frame is encrypted
and sealed: nobody can read, hijack, or remove from or add to an authenticated connection. The secret itself never leaves the
process. With TLS, the certificates authenticate the peers; without either (loopback, or by explicit wish), the hello only
protects against mistakes.

The initiator sends a hello. The acceptor answers with a hello and its proof. The initiator sends its proof. A side that refuses
says so in place of its next part, so that both sides can report why.
"""

from __future__ import annotations

import hmac
import struct
from enum import IntEnum
from typing import Final

from quire.live.network.seal import Seal
from quire.model.errors import QuireError

VERSION: Final = 1
NONCE_BYTES: Final = 32
PROOF_BYTES: Final = 32

_MAGIC = b"QUIRE/"
_HELLO = struct.Struct("!6sHBBII32s")
HELLO_BYTES: Final = _HELLO.size
NAMED: Final = 0xFFFF_FFFF
"""In place of a number: a process with a name gives it only in its introduction, and need not know which one it reaches."""
HELLO_BEGINS: Final = _MAGIC[:1]
"""The first byte of a hello, with which no TLS record begins."""
_TLS_BEGINS = b"\x16\x03"
_REFUSAL = struct.Struct("!6sHB23x")
"""What an initiator that refuses sends in place of its proof, with the same length; practically no proof begins like this."""


class Trust(IntEnum):
    """How the two ends of a connection authenticate each other."""

    OPEN = 0
    SECRET = 1
    TLS = 2


class Answer(IntEnum):
    """What a hello says of the one before it."""

    WELCOME = 0
    OTHER_VERSION = 1
    OTHER_TRUST = 2
    NOT_ME = 3
    STRANGER = 4
    WRONG_SECRET = 5
    OTHER_AUTHORITY = 6
    CERTIFICATE_EXPIRED = 7
    CERTIFICATE_NOT_YET_VALID = 8
    BAD_CERTIFICATE = 9
    OTHER_KIND = 10


class Refused(QuireError):
    """The handshake failed: the sentence says why, and holds no secret. Send the `last_words` before closing.

    `answer` is None if the other side does not speak this protocol at all.
    """

    def __init__(self, reason: str, answer: Answer | None = None, last_words: bytes = b"") -> None:
        super().__init__(reason)
        self.answer = answer
        self.last_words = last_words


class Handshake:
    """One side of the exchange. Feed it exactly `wanted` bytes at a time, and send what it returns, until `done`."""

    def __init__(
        self,
        *,
        initiator: bool,
        me: int,
        members: int,
        peer: int | None,
        trust: Trust,
        nonce: bytes,
        secret: bytes | None = None,
    ) -> None:
        if len(nonce) != NONCE_BYTES:
            raise ValueError(f"a nonce has {NONCE_BYTES} bytes")
        if (trust is Trust.SECRET) != (secret is not None):
            raise ValueError("a secret goes with Trust.SECRET, and nothing else does")
        if initiator != (peer is not None):
            raise ValueError("an initiator knows whom it calls, and nobody else does")
        self.peer = peer
        self.claimed: int | None = peer
        """Who the peer claims to be, which may not be true."""
        self.wanted = HELLO_BYTES
        self.done = False
        self.met_tls = False
        """Whether TLS came instead of a hello, so that the peer may be a member, but it is unknown which."""
        self.sending: Seal | None = None
        self.receiving: Seal | None = None
        self._initiator = initiator
        self._me = me
        self._members = members
        self._trust = trust
        self._nonce = nonce
        self._secret = secret
        self._hello = b""
        self._transcript = b""

    def start(self) -> bytes:
        """What the initiator sends first."""
        assert self._initiator
        assert self.peer is not None
        self._hello = self._make_hello(Answer.WELCOME, self.peer)
        if self._secret is not None:
            self.wanted = HELLO_BYTES + PROOF_BYTES
        return self._hello

    def receive(self, data: bytes) -> bytes:
        """Take the next `wanted` bytes; returns what to send. Raises Refused if the peer is rejected."""
        if self._transcript:
            self._check_proof(data, b"initiator")
            self._finish()
            return b""
        hello, proof = data[:HELLO_BYTES], data[HELLO_BYTES:]
        magic, version, answer, trust, member, addressee, _ = _HELLO.unpack(hello)
        if hello.startswith(_TLS_BEGINS):
            self.met_tls = True
            mine = self._trust.name.lower()
            # A TLS client understands from any answer that is not TLS that nobody speaks TLS here.
            answer = self._make_hello(Answer.OTHER_TRUST, self._me)
            raise Refused(
                f"the peer uses TLS, this member is secured by {mine!r}; use the same security at all members", None, answer
            )
        if magic != _MAGIC:
            raise Refused("the peer does not speak this protocol")
        if member < self._members:
            self.claimed = member
        if answer != Answer.WELCOME:
            raise Refused(*_why(answer, version, trust, self._trust))
        verdict = self._judge(version, trust, member, addressee)
        if verdict is not Answer.WELCOME:
            raise Refused(*_why(verdict, version, trust, self._trust), self._last_words(verdict, trust, member))
        self.peer = member
        if self._initiator:
            self._transcript = self._hello + hello
            if self._secret is not None:
                self._check_proof(proof, b"acceptor")
            self._finish()
            return self._proof(b"initiator")
        self._hello = self._make_hello(Answer.WELCOME, member)
        self._transcript = hello + self._hello
        if self._secret is None:
            self._finish()
            return self._hello
        self.wanted = PROOF_BYTES
        return self._hello + self._proof(b"acceptor")

    def _last_words(self, verdict: Answer, trust: int, member: int) -> bytes:
        """The answer of an acceptor that refuses a hello, with the same length as the answer that the sender expects."""
        if self._initiator:
            return b""
        padding = bytes(PROOF_BYTES) if trust == Trust.SECRET else b""
        return self._make_hello(verdict, member) + padding

    def _judge(self, version: int, trust: int, member: int, addressee: int) -> Answer:
        if version != VERSION:
            return Answer.OTHER_VERSION
        if trust != self._trust:
            return Answer.OTHER_TRUST
        if NAMED in (member, self._me):
            return Answer.WELCOME if member == self._me else Answer.OTHER_KIND
        if addressee != self._me:
            return Answer.NOT_ME
        if member == self._me or member >= self._members or (self.peer is not None and member != self.peer):
            return Answer.STRANGER
        return Answer.WELCOME

    def _make_hello(self, answer: Answer, addressee: int) -> bytes:
        return _HELLO.pack(_MAGIC, VERSION, answer, self._trust, self._me, addressee, self._nonce)

    def _proof(self, role: bytes) -> bytes:
        if self._secret is None:
            return b""
        return hmac.digest(self._secret, b"quire proof " + role + self._transcript, "sha256")

    def _check_proof(self, proof: bytes, role: bytes) -> None:
        if hmac.compare_digest(proof, self._proof(role)):
            return
        if proof == _REFUSAL.pack(_MAGIC, VERSION, Answer.WRONG_SECRET):
            raise Refused("the peer says that it has another secret; give all members the same", Answer.WRONG_SECRET)
        last_words = _REFUSAL.pack(_MAGIC, VERSION, Answer.WRONG_SECRET) if self._initiator else b""
        raise Refused("the peer does not know this group's secret", Answer.WRONG_SECRET, last_words)

    def _finish(self) -> None:
        self.done = True
        self.wanted = 0
        if self._secret is not None:
            mine, theirs = (b"initiator", b"acceptor") if self._initiator else (b"acceptor", b"initiator")
            self.sending = Seal(hmac.digest(self._secret, b"quire key " + mine + self._transcript, "sha256"))
            self.receiving = Seal(hmac.digest(self._secret, b"quire key " + theirs + self._transcript, "sha256"))


_OF_CERTIFICATES = {
    Answer.OTHER_AUTHORITY: "it was not issued by the peer's authority; use keys from one authority everywhere",
    Answer.CERTIFICATE_EXPIRED: "it has expired by the peer's clock",
    Answer.CERTIFICATE_NOT_YET_VALID: "it is not valid yet by the peer's clock",
    Answer.BAD_CERTIFICATE: "something is wrong with it; make new keys with `quire keys`",
}
"""Why a peer may have rejected this member's certificate."""


def complaint(me: int, peer: int, answer: Answer) -> bytes:
    """What a member that rejected a certificate sends without TLS, because TLS was not established: a hello that only refuses.
    It is not authenticated, and only for people to read."""
    return _HELLO.pack(_MAGIC, VERSION, answer, Trust.TLS, me, peer, bytes(NONCE_BYTES))


def _why(answer: int, version: int, trust: int, mine: Trust) -> tuple[str, Answer]:
    """A sentence for an answer, whichever of the two gave it: `version` and `trust` are the peer's."""
    if answer == Answer.OTHER_VERSION:
        return f"the peer speaks version {version} of the protocol, this member version {VERSION}", Answer.OTHER_VERSION
    if answer == Answer.OTHER_TRUST:
        theirs = Trust(trust).name.lower() if trust in set(Trust) else str(trust)
        sentence = (
            f"the peer is secured by {theirs!r}, this member by {mine.name.lower()!r}; use the same security at all members"
        )
        return sentence, Answer.OTHER_TRUST
    if answer == Answer.NOT_ME:
        return "the list of addresses is wrong: the member at that address has another number", Answer.NOT_ME
    if answer == Answer.OTHER_KIND:
        return "members of one group have names and those of the other have numbers; give all the same list", Answer.OTHER_KIND
    if answer in _OF_CERTIFICATES:
        return f"the peer does not accept this member's certificate: {_OF_CERTIFICATES[Answer(answer)]}", Answer(answer)
    return "the peer's number is not that of any other member of this group", Answer.STRANGER
