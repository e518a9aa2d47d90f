"""Which certificates a change of a trust store takes from the peers that are connected."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding

from kraftd.runtime.connections.peer_certificates import PeerCertificates
from testkit.certificates import Authority

FIRST, SECOND = Authority("CN=First CA"), Authority("CN=Second CA")
NO_LONGER = "its certificate is no longer trusted"
NOW_MS = 1_000


def der(certificate: Any) -> bytes:
    encoded: bytes = certificate.public_bytes(Encoding.DER)
    return encoded


class Stores:
    """The trust store of a listener, which changes, and its peers by name."""

    def __init__(self, *trusted: Any) -> None:
        self.guard: Any = SimpleNamespace(tls=SimpleNamespace(contexts=None))
        self.trust(*trusted)
        listeners = {"SECURE": self.guard, "PLAIN": SimpleNamespace(tls=None)}
        self.peers = PeerCertificates(SimpleNamespace(listeners=listeners))  # type: ignore[arg-type]

    def trust(self, *trusted: Any) -> None:
        self.guard.tls.contexts = SimpleNamespace(trusted=[der(one) for one in trusted] or None)

    def over(self, *connections: int) -> list[str | None]:
        self.peers.look()
        return [self.peers.why_over(one, NOW_MS) for one in connections]


def test_a_lost_authority_ends_its_peers_and_no_others() -> None:
    stores = Stores(FIRST.certificate, SECOND.certificate)
    for number, authority in enumerate((FIRST, SECOND)):
        assert stores.peers.add(number, "SECURE", der(authority.issue("CN=a").certificate)) == "CN=a"
    assert stores.over(0, 1, 2) == [None] * 3
    stores.trust(SECOND.certificate)
    assert stores.over(0, 1, 2) == [NO_LONGER, None, None]
    # A peer whose handshake was under way.
    stores.peers.add(3, "SECURE", der(FIRST.issue("CN=b").certificate))
    assert stores.over(0, 1, 3) == [NO_LONGER, None, NO_LONGER]
    stores.trust(SECOND.certificate, FIRST.certificate)
    assert stores.over(0, 1, 3) == [None] * 3
    stores.peers.forget(1)
    stores.trust(FIRST.certificate)
    assert stores.over(1) == [None]


def test_a_renewed_authority_keeps_its_peers() -> None:
    stores = Stores(FIRST.certificate)
    stores.peers.add(0, "SECURE", der(FIRST.issue("CN=a").certificate))
    renewed = FIRST._sign(FIRST.certificate.subject, FIRST.key.public_key(), 900, is_authority=True)
    stores.trust(renewed)
    assert stores.over(0) == [None]
    stores.trust()  # the system's authorities
    assert stores.over(0) == [None]


def test_a_lost_certificate_ends_the_peer_that_has_it() -> None:
    one, other = (FIRST.issue(name).certificate for name in ("CN=a", "CN=b"))
    stores = Stores(one, other)
    stores.peers.add(0, "SECURE", der(one))
    stores.peers.add(1, "SECURE", der(other))
    stores.trust(other)
    assert stores.over(0, 1) == [NO_LONGER, None]
