"""A real daemon with TLS and SASL, and clients that it accepts or refuses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from kraftd.net.tls.contexts import TlsContexts
from kraftd.security.sasl.mechanism import ClientExchange
from kraftd.security.sasl.plain import PlainClient
from kraftd.security.sasl.scram_client import ScramClient
from kraftd.security.tls_settings import StoreSettings, TlsSettings
from testkit.certificates import Authority, Issued
from testkit.secured_client import Client

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def tls_keys(home: Path, authority: Authority, subject: str, prefix: str = "") -> dict[str, str]:
    """The keys of a node whose certificate has that subject, in files of its home."""
    key = authority.issue(subject).write_pem(home / "node.pem")
    trust = authority.write_pem(home / "trust.pem")
    return {
        f"{prefix}ssl.keystore.type": "PEM",
        f"{prefix}ssl.keystore.location": str(key),
        f"{prefix}ssl.truststore.type": "PEM",
        f"{prefix}ssl.truststore.location": str(trust),
    }


def tls_of(authority: Authority, issued: Issued | None = None) -> TlsContexts:
    """The contexts of a client that trusts the authority, with a certificate or without."""
    keystore = StoreSettings()
    if issued is not None:
        keystore = StoreSettings(type="PEM", key=issued.key_pem, certificates=issued.chain_pem)
    return TlsContexts(
        TlsSettings(keystore=keystore, truststore=StoreSettings(type="PEM", certificates=authority.pem))
    )


def plain(name: str, password: str) -> Callable[[], ClientExchange]:
    return partial(PlainClient, name, password)


def scram(name: str, password: str, mechanism: str = "SCRAM-SHA-512") -> Callable[[], ClientExchange]:
    return partial(ScramClient, mechanism, name, password, "nonce-of-a-test")


def connect(
    port: int,
    contexts: TlsContexts | None = None,
    login: Callable[[], ClientExchange] | None = None,
    timeout_s: float = 20,
) -> Client:
    return Client("127.0.0.1", port, timeout_s, contexts.client if contexts else None, login)
