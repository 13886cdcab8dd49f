"""The seal on the frames of a connection that a secret secures: AES-256-GCM, which encrypts and authenticates in one pass.

Each direction of a connection has a key of its own, from the nonces of its handshake, so no two streams share one. The nonce of
a frame is its position in the stream. It is never sent, so a frame that was changed, dropped, repeated, inserted or moved does
not open. Lengths of frames are not hidden.

A key is replaced long before it has encrypted so much that AES-GCM loses strength: after FRAMES_PER_KEY frames, or after
BYTES_PER_KEY bytes. Both ends count the same stream, so they change it at the same frame, and say nothing about it.
"""

from __future__ import annotations

import hmac
import struct
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from quire.wire.frames import SealBroken

SEAL_BYTES: Final = 16
FRAMES_PER_KEY: Final = 1 << 24
BYTES_PER_KEY: Final = 1 << 36
"""With 2^32 blocks under one key, the advantage in distinguishing the stream from noise is at most 2^-65."""

_LENGTH = struct.Struct("!I")
_NONCE = struct.Struct("!4xQ")


class Seal:
    """One direction of a connection: `sealed` at one end, `opened` at the other."""

    def __init__(self, key: bytes, *, frames_per_key: int = FRAMES_PER_KEY, bytes_per_key: int = BYTES_PER_KEY) -> None:
        self._key = key
        self._cipher = AESGCM(key)
        self._frames_per_key = frames_per_key
        self._bytes_per_key = bytes_per_key
        self._count = 0
        self._frames_left = frames_per_key
        self._bytes_left = bytes_per_key
        self._content = memoryview(bytearray(1 << 12))

    def sealed(self, head: bytes, *parts: bytes | memoryview) -> bytearray:
        """The frame that these make, as it goes on the wire. The head begins with the length of the frame without a seal."""
        content = b"".join((head[_LENGTH.size :], *parts))
        length = len(content) + SEAL_BYTES
        frame = bytearray(_LENGTH.size + length)
        _LENGTH.pack_into(frame, 0, length)
        nonce = self._next_nonce(length)
        self._cipher.encrypt_into(nonce, content, None, memoryview(frame)[_LENGTH.size :])
        return frame

    def opened(self, frame: memoryview) -> memoryview:
        """What a frame holds, until the next one is opened. Raises SealBroken if it is not the one that was sealed here."""
        length = len(frame) - SEAL_BYTES
        if length < 0:
            raise SealBroken("a frame is too short for its seal")
        if length > len(self._content):
            # A new buffer for each of the large frames would cost more than opening them.
            self._content = memoryview(bytearray(2 * length))
        content, nonce = self._content[:length], self._next_nonce(len(frame))
        try:
            self._cipher.decrypt_into(nonce, frame, None, content)
        except InvalidTag:
            raise SealBroken("a frame failed authentication") from None
        return content

    def _next_nonce(self, length: int) -> bytes:
        """The nonce of the next frame, under the present key, which may be a new one from here on."""
        if not self._frames_left or self._bytes_left < length:
            self._key = hmac.digest(self._key, b"quire next key", "sha256")
            self._cipher = AESGCM(self._key)
            self._frames_left, self._bytes_left = self._frames_per_key, self._bytes_per_key
        self._frames_left -= 1
        self._bytes_left -= length
        self._count += 1
        return _NONCE.pack(self._count)
