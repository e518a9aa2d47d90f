"""Java key stores (JKS) read: the format of sun.security.provider.JavaKeyStore, and its protection of keys.

Its digests are old, and checked as Java does: they only detect a wrong password and damage.
"""

from __future__ import annotations

import hashlib
import hmac
from struct import Struct, error

MAGIC = 0xFEEDFEED
_KEY, _CERTIFICATE = 1, 2
_HEADER = Struct(">III")
_DIGEST_BYTES = 20
_WHITENER = b"Mighty Aphrodite"
_MAX_ENTRIES = 10_000


class KeyEntry:
    """A private key, still protected, with its certificate chain in DER."""

    __slots__ = ("chain", "protected")

    def __init__(self, protected: bytes, chain: list[bytes]) -> None:
        self.protected = protected
        self.chain = chain

    def private_key(self, password: str) -> bytes:
        """The key as PKCS #8 in DER. Raises ValueError for a wrong password."""
        data = _protected_bytes(self.protected)
        salt, secret, check = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        phrase = password.encode("utf-16-be")
        mask, block = bytearray(), salt
        while len(mask) < len(secret):
            block = hashlib.sha1(phrase + block, usedforsecurity=False).digest()
            mask += block
        key = bytes(a ^ b for a, b in zip(secret, mask, strict=False))
        if not hmac.compare_digest(hashlib.sha1(phrase + key, usedforsecurity=False).digest(), check):
            raise ValueError("the key's password is wrong")
        return key

    def __repr__(self) -> str:
        return f"<KeyEntry with {len(self.chain)} certificates>"


class JavaKeyStore:
    """The entries of a file, in its order."""

    def __init__(self, data: bytes, password: str | None) -> None:
        """Without a password damage is not found. Raises ValueError for what cannot be read."""
        self.keys: list[KeyEntry] = []
        self.certificates: list[bytes] = []
        try:
            end = self._read(data)
        except (error, IndexError, UnicodeDecodeError):
            raise ValueError("it ends too early, or is damaged") from None
        if password is not None:
            digest = hashlib.sha1(
                password.encode("utf-16-be") + _WHITENER + data[:end], usedforsecurity=False
            ).digest()
            if not hmac.compare_digest(digest, data[end : end + _DIGEST_BYTES]):
                raise ValueError("its password is wrong, or it is damaged")

    def _read(self, data: bytes) -> int:
        magic, version, entries = _HEADER.unpack_from(data)
        if magic != MAGIC or version not in (1, 2):
            raise ValueError("it is no Java key store")
        reader = _Reader(data, _HEADER.size)
        for _ in range(min(entries, _MAX_ENTRIES)):
            kind = reader.number(4)
            reader.sized(2)  # alias
            reader.number(8)  # date
            if kind == _KEY:
                protected = reader.sized(4)
                chain = [reader.certificate(version) for _ in range(reader.number(4))]
                self.keys.append(KeyEntry(protected, chain))
            elif kind == _CERTIFICATE:
                self.certificates.append(reader.certificate(version))
            else:
                raise ValueError(f"it has an entry of kind {kind}, which is not known")
        return reader.at

    def __repr__(self) -> str:
        return f"<JavaKeyStore {len(self.keys)} keys, {len(self.certificates)} certificates>"


class _Reader:
    """Big-endian numbers and sized bytes, one after the other."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at

    def take(self, size: int) -> bytes:
        part = self.data[self.at : self.at + size]
        if len(part) < size:
            raise IndexError
        self.at += size
        return part

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def sized(self, size: int) -> bytes:
        return self.take(self.number(size))

    def certificate(self, version: int) -> bytes:
        if version == 2:
            self.sized(2)  # its type, X.509
        return self.sized(4)


def _protected_bytes(data: bytes) -> bytes:
    """The OCTET STRING of an EncryptedPrivateKeyInfo: SEQUENCE { SEQUENCE { … }, OCTET STRING }."""
    try:
        inner = _element(data, 0x30)
        _, algorithm_end = _bounds(inner, 0x30)
        return _element(inner[algorithm_end:], 0x04)
    except IndexError:
        raise ValueError("a protected key is damaged") from None


def _element(data: bytes, tag: int) -> bytes:
    start, end = _bounds(data, tag)
    return data[start:end]


def _bounds(data: bytes, tag: int) -> tuple[int, int]:
    """Where the contents of a DER element begin and end."""
    if data[0] != tag:
        raise ValueError("a protected key is damaged")
    length, start = data[1], 2
    if length & 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(data[2 : 2 + size], "big"), 2 + size
    if start + length > len(data):
        raise IndexError
    return start, start + length
