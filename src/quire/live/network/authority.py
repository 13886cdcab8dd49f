"""A group's own certificate authority, which certifies its members and nothing else.

A member is identified by the name in its certificate, which says which member of which group it is. Nobody outside the group
needs to trust the authority, so it is made on the spot; its key is needed only to certify and can be kept offline.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from quire.live.settings import certificate_name

CLOCK_SKEW = timedelta(hours=1)
"""Certificates are valid from a little before they were made, for the sake of hosts whose clocks are behind."""


class Pair(NamedTuple):
    """A certificate and its key, both in PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Certifies the members of one group until `days` from `now`."""

    def __init__(self, group: str, days: int, now: datetime | None = None) -> None:
        self._group = group
        self._now = now or datetime.now(UTC)
        self._days = days
        self._key = ec.generate_private_key(ec.SECP256R1())
        # Certificates name their issuer, so no two authorities should have the same name.
        serial = x509.random_serial_number()
        self._name = _name(f"quire authority {serial:x}"[:64])
        public = self._key.public_key()
        certificate = (
            self._builder(self._name, public, days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(certifies=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pair = _pair(certificate, self._key)

    def certify(self, member: int | str, days: int | None = None, now: datetime | None = None) -> Pair:
        """A new key for this member, and the certificate that names it, valid as long as the authority, or for `days`, from
        when the authority was made or `now`."""
        key = ec.generate_private_key(ec.SECP256R1())
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        names = [x509.DNSName(certificate_name(self._group, member))]
        certificate = (
            self._builder(_name(f"quire member {member}"), key.public_key(), self._days if days is None else days, now)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(certifies=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return _pair(certificate, key)

    def _builder(
        self, subject: x509.Name, public: ec.EllipticCurvePublicKey, days: int, now: datetime | None = None
    ) -> x509.CertificateBuilder:
        begins = now or self._now
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins - CLOCK_SKEW)
            .not_valid_after(begins + timedelta(days=days))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )


def made_for(path: Path) -> str | None:
    """Whom a certificate file was made for, if it was made here: `authority`, `member 2`, `member a`; None for any other."""
    try:
        subject = x509.load_pem_x509_certificate(path.read_bytes()).subject.rfc4514_string()
    except (OSError, ValueError):
        return None
    found = re.fullmatch(r"CN=quire (authority|member [A-Za-z0-9][\w.-]*)( [0-9a-f]+)?", subject)
    return None if found is None else found[1]


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, certifies: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certifies,
        key_cert_sign=certifies,
        crl_sign=certifies,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(certificate.public_bytes(encoding), private)
