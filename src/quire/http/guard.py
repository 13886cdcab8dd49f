"""Access control: refuses requests from other sites and, beyond this machine, requests without the token.

A browser lets any page send requests to any address, loopback included. So a request whose Host is not a name of this server
comes from a page whose name was pointed here (DNS rebinding), and one with a different Origin comes from another site: both are
refused, with or without a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from hmac import compare_digest

from quire.http.addresses import HttpAddress, is_loopback, read_http_address
from quire.model.errors import BadInput

TOKEN_BYTES_MIN = 16


class Refusal(Exception):
    """Why a request is refused, and the HTTP status for that."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Guard:
    """The access control of a server at this address. Without a token it must be on loopback; raises BadInput otherwise."""

    def __init__(self, address: HttpAddress, token: str | None = None) -> None:
        if token is None and not address.is_loopback():
            raise BadInput(f"{address} can be reached from other machines: give a token, or an address like 127.0.0.1:9400")
        if token is not None and len(token.encode()) < TOKEN_BYTES_MIN:
            raise BadInput(f"a token needs at least {TOKEN_BYTES_MIN} bytes; `quire keys --secret` makes one")
        self._token = token
        self._local = address.is_loopback()

    def check(self, method: str, headers: Mapping[str, str]) -> None:
        """Raise Refusal unless a request with these headers may be answered."""
        if method not in ("GET", "HEAD"):
            raise Refusal(405, "nothing can be changed here: only GET is answered")
        host = headers.get("host", "")
        if self._local and not _names_loopback(host):
            raise Refusal(421, "this server has another name")
        origin = headers.get("origin")
        if (origin is not None and origin != f"http://{host}") or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise Refusal(403, "requests of other sites are not answered")
        if self._token is not None:
            given = headers.get("authorization", "").removeprefix("Bearer ")
            if not compare_digest(given.encode(), self._token.encode()):
                raise Refusal(401, "a token is needed: Authorization: Bearer TOKEN")


def _names_loopback(host: str) -> bool:
    try:
        return is_loopback(read_http_address(host if host.rpartition(":")[2].isdecimal() else f"{host}:80").host)
    except BadInput:
        return False
