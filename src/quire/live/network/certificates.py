"""What is wrong with a certificate, in plain words: a member's own before it joins, a peer's when TLS refuses it."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

from quire.live.network.handshake import Answer
from quire.live.network_options import Certificates
from quire.model.errors import BadInput

# Numbers of OpenSSL, which Python does not name.
_NOT_YET_VALID, _EXPIRED = 9, 10
_OTHER_AUTHORITY = (2, 7, 18, 19, 20, 21, 24)
"""Issuer unknown, signature wrong, self-signed, chain incomplete, issuer no authority: not issued by the group's authority."""

_WHY = {
    Answer.CERTIFICATE_EXPIRED: "its certificate has expired",
    Answer.CERTIFICATE_NOT_YET_VALID: "its certificate is not valid yet; compare the clocks of the hosts",
    Answer.OTHER_AUTHORITY: "its certificate was issued by another authority; use keys from one authority everywhere",
}


def check_in_date(certificates: Certificates, now: datetime | None = None) -> None:
    """Raise BadInput in one sentence where a member's own certificate, or its group's authority, is not valid now."""
    now = now or datetime.now(UTC)
    own, authority = certificates.certificate, certificates.authority
    for what, path in (("this member's certificate", own), ("the group's authority", authority)):
        begins, ends = _validity(path)
        if now > ends:
            raise BadInput(f"{what} in {path} expired on {ends:%Y-%m-%d at %H:%M} UTC; make new keys with `quire keys`")
        if now < begins:
            raise BadInput(f"{what} in {path} is not valid before {begins:%Y-%m-%d at %H:%M} UTC; is this host's clock right?")


def _validity(path: Path) -> tuple[datetime, datetime]:
    from cryptography import x509  # Only groups with certificates need it.

    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    return certificate.not_valid_before_utc, certificate.not_valid_after_utc


def judged(error: Exception) -> Answer | None:
    """Why TLS rejected the peer's certificate, if that is why the connection failed."""
    if not isinstance(error, ssl.SSLCertVerificationError):
        return None
    if error.verify_code == _EXPIRED:
        return Answer.CERTIFICATE_EXPIRED
    if error.verify_code == _NOT_YET_VALID:
        return Answer.CERTIFICATE_NOT_YET_VALID
    return Answer.OTHER_AUTHORITY if error.verify_code in _OTHER_AUTHORITY else Answer.BAD_CERTIFICATE


def why_not(error: Exception) -> str:
    """Why a connection failed, for people."""
    answer = judged(error)
    if answer is not None:
        return _WHY.get(answer, f"its certificate was not accepted ({getattr(error, 'verify_message', error)})")
    if isinstance(error, ssl.SSLError):
        if error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
            return "it presented no certificate"
        if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNSUPPORTED_PROTOCOL"):
            return "it does not speak the same TLS as this member; secure all members in the same way"
        return f"TLS failed ({error.reason or error})"
    text = getattr(error, "strerror", None) or str(error)
    return text or "it ended the connection before TLS was ready"
