"""Addresses of HTTP servers: HOST:PORT."""

from __future__ import annotations

from ipaddress import ip_address
from typing import NamedTuple

from quire.model.errors import BadInput

PORT_MAX = 65_535


class HttpAddress(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def is_loopback(self) -> bool:
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def read_http_address(text: str) -> HttpAddress:
    """Raises BadInput for what is not HOST:PORT. Port 0 means any that is free."""
    host, colon, port = text.removeprefix("http://").rstrip("/").rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not colon or not host or not (port.isascii() and port.isdecimal()) or int(port) > PORT_MAX:
        raise BadInput(f"{text!r} is not an address: give HOST:PORT, like 127.0.0.1:9400")
    return HttpAddress(host, int(port))
