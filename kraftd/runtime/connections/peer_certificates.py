"""The certificates by which peers are known, while their connections are open, and why one no longer counts.

A certificate counts until it expires, or until the trust store loses it or the authority that has issued it.
One that an intermediate authority has issued, which the peer sends and the store does not have, counts on.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from kraftd.named_tuple import NamedTuple
from kraftd.security.distinguished_names import read_certificate

if TYPE_CHECKING:
    from kraftd.net.tls.contexts import TlsContexts
    from kraftd.runtime.security.assembly import Security


class _Peer(NamedTuple):
    listener: str
    ends_ms: int
    issuer: bytes
    digest: bytes


class _Lost(NamedTuple):
    """What a trust store has lost: subjects that none of its certificates has, and digests."""

    subjects: frozenset[bytes] = frozenset()
    digests: frozenset[bytes] = frozenset()


class PeerCertificates:
    """By connection, the certificate that authenticates it."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._peers: dict[int, _Peer] = {}
        self._contexts = self._contexts_now()
        self._lost: dict[str, _Lost] = {}

    def __repr__(self) -> str:
        return f"<PeerCertificates of {len(self._peers)} connections>"

    def add(self, connection_id: int, listener: str, certificate: bytes) -> str:
        """Note a connection's certificate (DER); return its subject as Java writes it. Raises ValueError."""
        known = read_certificate(certificate)
        digest = sha256(certificate).digest()
        self._peers[connection_id] = _Peer(listener, known.ends_ms, known.issuer, digest)
        return known.text

    def forget(self, connection_id: int) -> None:
        """The connection is gone."""
        self._peers.pop(connection_id, None)

    def look(self) -> None:
        """Find what trust stores have lost since the last look."""
        before, self._contexts = self._contexts, self._contexts_now()
        for name, contexts in self._contexts.items():
            last = before.get(name, contexts)
            if contexts is not last:
                self._lost[name] = _lost(self._lost.get(name, _Lost()), last.trusted, contexts.trusted)

    def why_over(self, connection_id: int, wall_ms: int) -> str | None:
        """The reason why a connection ends, by the last `look`; None if it goes on."""
        peer = self._peers.get(connection_id)
        if peer is None:
            return None
        if wall_ms >= peer.ends_ms:
            return "its certificate has expired"
        lost = self._lost.get(peer.listener)
        if lost is not None and (peer.issuer in lost.subjects or peer.digest in lost.digests):
            return "its certificate is no longer trusted"
        return None

    def _contexts_now(self) -> dict[str, TlsContexts]:
        listeners = self._security.listeners.items()
        return {name: guard.tls.contexts for name, guard in listeners if guard.tls is not None}


def _lost(lost: _Lost, before: list[bytes] | None, now: list[bytes] | None) -> _Lost:
    """What is lost after a change, with what was lost before and has not come back."""
    if before is None or now is None:
        return _Lost()  # the system's authorities are not read
    gone = set(before).difference(now)
    if not gone and not lost.digests:
        return lost
    subjects = (lost.subjects | _subjects(gone)) - _subjects(now)
    return _Lost(subjects, (lost.digests | _digests(gone)) - _digests(now))


def _digests(certificates: Iterable[bytes]) -> frozenset[bytes]:
    return frozenset(sha256(one).digest() for one in certificates)


def _subjects(certificates: Iterable[bytes]) -> frozenset[bytes]:
    found = set()
    for one in certificates:
        with suppress(ValueError):
            found.add(read_certificate(one).subject)
    return frozenset(found)
