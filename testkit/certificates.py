"""Certificate authorities, certificates and stores that tests create when they need them."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
_DAY = datetime.timedelta(days=1)
_NAMES = {"CN": NameOID.COMMON_NAME, "OU": NameOID.ORGANIZATIONAL_UNIT_NAME, "O": NameOID.ORGANIZATION_NAME}


def _name(text: str) -> x509.Name:
    """The name for a text like ``CN=alice,OU=Lab``, whose most specific part comes first."""
    parts = [part.partition("=") for part in reversed(text.split(","))]
    return x509.Name([x509.NameAttribute(_NAMES[key], value) for key, _, value in parts])


class Issued:
    """A certificate with its key, and the authority that issued it."""

    def __init__(self, key: Key, certificate: x509.Certificate, authority: x509.Certificate) -> None:
        self.key = key
        self.certificate = certificate
        self.authority = authority

    @property
    def key_pem(self) -> str:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    @property
    def chain_pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def encrypted_key_pem(self, password: str) -> str:
        encryption = BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def write_pem(self, path: Path) -> Path:
        """Key and chain in one file, as ``ssl.keystore.location`` names it."""
        path.write_text(self.key_pem + self.chain_pem)
        return path

    def write_pkcs12(self, path: Path, password: str) -> Path:
        encryption = BestAvailableEncryption(password.encode())
        data = pkcs12.serialize_key_and_certificates(
            b"kraftd", self.key, self.certificate, [self.authority], encryption
        )
        path.write_bytes(data)
        return path


class Authority:
    """An independent certificate authority."""

    def __init__(self, name: str = "CN=Test CA") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._sign(_name(name), self.key.public_key(), 365, is_authority=True)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def write_pem(self, path: Path) -> Path:
        """The trust store that contains only this authority."""
        path.write_text(self.pem)
        return path

    def issue(
        self, subject: str | x509.Name, *, days: float = 30, host: str = "127.0.0.1", rsa_bits: int = 0
    ) -> Issued:
        """A certificate for client and server; with negative days it has expired. Its key is EC or RSA."""
        name = _name(subject) if isinstance(subject, str) else subject
        key: Key = ec.generate_private_key(ec.SECP256R1())
        if rsa_bits:
            key = rsa.generate_private_key(65537, rsa_bits)
        return Issued(key, self._sign(name, key.public_key(), days, host), self.certificate)

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey,
        days: float,
        host: str = "127.0.0.1",
        *,
        is_authority: bool = False,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(host))]
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if is_authority else self.certificate.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * _DAY)
            .not_valid_after(now + days * _DAY)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        )
        if not is_authority:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self.key, hashes.SHA256())
