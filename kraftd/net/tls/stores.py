"""Reads key stores and trust stores into keys and certificates in PEM, for a TLS context.

PEM, PKCS #12 and JKS; a JKS file may hold PKCS #12, as Java's tools write it. Every ValueError names the
configuration key at fault, and no secret.
"""

from __future__ import annotations

import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)

from kraftd.input_file import read_input_file
from kraftd.net.tls.jks import MAGIC, JavaKeyStore
from kraftd.security.tls_settings import StoreSettings

TYPES = ("PEM", "PKCS12", "JKS")
MAX_STORE_BYTES = 16 * 1024 * 1024
_PEM_BEGIN = "-----BEGIN "


class Identity:
    """A private key with its certificate chain, in PEM; the key is not protected: keep it in memory."""

    __slots__ = ("certificates", "chain", "key")

    def __init__(self, key: bytes, certificates: list[x509.Certificate]) -> None:
        self.key = key
        self.certificates = certificates
        self.chain = b"".join(one.public_bytes(Encoding.PEM) for one in certificates)

    @property
    def not_after(self) -> datetime.datetime:
        """The earliest expiry in the chain."""
        return min(one.not_valid_after_utc for one in self.certificates)

    @property
    def not_before(self) -> datetime.datetime:
        """The time from which on the whole chain is valid."""
        return max(one.not_valid_before_utc for one in self.certificates)

    def __repr__(self) -> str:
        subject = self.certificates[0].subject.rfc4514_string()
        return f"<Identity {subject} until {self.not_after:%Y-%m-%d}>"


def load_identity(settings: StoreSettings) -> Identity | None:
    """The key and chain of ``ssl.keystore.*``, None where there is none. Raises ValueError."""
    _check_keystore(settings)
    if settings.key is not None:
        text = f"{settings.key}\n"
        return _pem_identity(text, settings.certificates or "", settings.key_password, "ssl.keystore.key")
    if settings.location is None:
        return None
    where = f"ssl.keystore.location={settings.location}"
    data = _read(settings.location, where)
    if settings.type == "PEM":
        text = data.decode("utf-8", "replace")
        return _pem_identity(text, text, settings.key_password, where)
    return _binary_identity(data, settings, where)


def load_trusted(settings: StoreSettings) -> list[bytes] | None:
    """The certificates of ``ssl.truststore.*`` in DER, None where there is no store. Raises ValueError."""
    _check_truststore(settings)
    if settings.certificates is not None:
        return _pem_trusted(settings.certificates, "ssl.truststore.certificates")
    if settings.location is None:
        return None
    where = f"ssl.truststore.location={settings.location}"
    data = _read(settings.location, where)
    if settings.type == "PEM":
        return _pem_trusted(data.decode("utf-8", "replace"), where)
    try:
        if _is_jks(data):
            store = JavaKeyStore(data, settings.password)
            trusted = [*store.certificates, *(entry.chain[0] for entry in store.keys if entry.chain)]
        else:
            pkcs = pkcs12.load_pkcs12(data, _password(settings.password))
            found = [pkcs.cert, *pkcs.additional_certs]
            trusted = [one.certificate.public_bytes(Encoding.DER) for one in found if one is not None]
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"{where}: {_opened_not(error)} ssl.truststore.password") from None
    if not trusted:
        raise ValueError(f"{where}: it holds no certificate")
    return trusted


def _check_keystore(settings: StoreSettings) -> None:
    """Check the combination of keys as Kafka's DefaultSslEngineFactory does."""
    if settings.type not in TYPES:
        raise ValueError(f"ssl.keystore.type={settings.type}: one of {', '.join(TYPES)} is expected")
    if settings.key is not None:
        if settings.type != "PEM":
            raise ValueError(f"ssl.keystore.key: it is PEM, but ssl.keystore.type={settings.type}")
        if settings.certificates is None:
            raise ValueError("ssl.keystore.key: ssl.keystore.certificate.chain is missing")
        if settings.location is not None:
            raise ValueError("ssl.keystore.key: ssl.keystore.location is set too; remove one of them")
    elif settings.certificates is not None:
        raise ValueError("ssl.keystore.certificate.chain: ssl.keystore.key is missing")
    if settings.type == "PEM":
        if settings.password is not None:
            raise ValueError("ssl.keystore.password: PEM has none; ssl.key.password opens its key")
    elif (settings.location is None) != (settings.password is None):
        missing = "location" if settings.location is None else "password"
        raise ValueError(f"ssl.keystore.{missing}: it is missing, beside the other one")


def _check_truststore(settings: StoreSettings) -> None:
    if settings.type not in TYPES:
        raise ValueError(f"ssl.truststore.type={settings.type}: one of {', '.join(TYPES)} is expected")
    if settings.certificates is not None:
        if settings.type != "PEM":
            raise ValueError(f"ssl.truststore.certificates: PEM, but ssl.truststore.type={settings.type}")
        if settings.location is not None:
            raise ValueError("ssl.truststore.certificates: ssl.truststore.location is set too; remove one")
    if settings.password is not None and (settings.type == "PEM" or settings.location is None):
        raise ValueError("ssl.truststore.password: there is no store that has a password")


def _read(location: str, where: str) -> bytes:
    try:
        return read_input_file(location, MAX_STORE_BYTES)
    except OSError as error:
        raise ValueError(f"{where}: cannot be read: {error.strerror}") from None


def _pem_identity(key: str, chain: str, password: str | None, where: str) -> Identity:
    begin = key.find(_PEM_BEGIN + "PRIVATE KEY-----")
    for kind in ("ENCRYPTED ", "RSA ", "EC "):
        if begin < 0:
            begin = key.find(f"{_PEM_BEGIN}{kind}PRIVATE KEY-----")
    if begin < 0:
        raise ValueError(f"{where}: it holds no private key in PEM")
    protected = "ENCRYPTED" in key[begin : begin + 200]
    if password is not None and not protected:
        raise ValueError(f"{where}: its private key is not encrypted; remove ssl.key.password")
    try:
        loaded = load_pem_private_key(key[begin:].encode(), _password(password))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError(f"{where}: the private key cannot be read; check ssl.key.password") from None
    try:
        certificates = x509.load_pem_x509_certificates(chain.encode())
    except ValueError:
        raise ValueError(f"{where}: it holds no certificate in PEM that can be read") from None
    return _identity(
        loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), certificates, where
    )


def _pem_trusted(text: str, where: str) -> list[bytes]:
    try:
        certificates = x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        raise ValueError(f"{where}: it holds no certificate in PEM that can be read") from None
    return [one.public_bytes(Encoding.DER) for one in certificates]


def _binary_identity(data: bytes, settings: StoreSettings, where: str) -> Identity:
    password = settings.password or ""
    key_password = password if settings.key_password is None else settings.key_password
    try:
        if _is_jks(data):
            store = JavaKeyStore(data, password)
            if not store.keys:
                raise ValueError("it holds no private key")
            entry = store.keys[0]
            loaded = load_der_private_key(entry.private_key(key_password), None)
            certificates = [x509.load_der_x509_certificate(one) for one in entry.chain]
        else:
            pkcs = pkcs12.load_pkcs12(data, _password(password))
            if pkcs.key is None or pkcs.cert is None:
                raise ValueError("it holds no private key")
            if key_password != password:  # that one has opened the key, too
                raise ValueError("ssl.key.password does not open its key")
            loaded = pkcs.key
            others = [one.certificate for one in pkcs.additional_certs]
            certificates = _chain(pkcs.cert.certificate, others)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ValueError(f"{where}: {_opened_not(error)} ssl.keystore.password") from None
    key = loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return _identity(key, certificates, where)


def _identity(key: bytes, certificates: list[x509.Certificate], where: str) -> Identity:
    if not certificates:
        raise ValueError(f"{where}: it holds no certificate")
    public = load_pem_private_key(key, None).public_key()
    if public != certificates[0].public_key():
        raise ValueError(f"{where}: the first certificate is not that of the private key")
    return Identity(key, certificates)


def _chain(leaf: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """The leaf and its issuers up to the root, in order: PKCS #12 has them as a set."""
    chain, left = [leaf], list(others)
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((one for one in left if one.subject == chain[-1].issuer), None)
        if issuer is None:
            break
        left.remove(issuer)
        chain.append(issuer)
    return chain


def _is_jks(data: bytes) -> bool:
    return data[:4] == MAGIC.to_bytes(4, "big")


def _password(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _opened_not(error: Exception) -> str:
    """The reason why a store does not open, in one clause that suggests checking its password."""
    text = str(error).rstrip(".") or "it cannot be read"
    return f"{text}; check the type and"
