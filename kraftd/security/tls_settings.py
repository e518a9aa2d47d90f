"""The TLS settings of one listener or client: Kafka's ``ssl.*`` keys."""

from __future__ import annotations

from msgspec import Struct

# OpenSSL always offers these three with TLS 1.3; the standard library cannot choose among them.
TLS_1_3 = frozenset(("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"))
DEFAULT_PROTOCOLS = ("TLSv1.2", "TLSv1.3")


class StoreSettings(Struct, frozen=True, kw_only=True):
    """A key store or a trust store: a file, or PEM as the value itself.

    `key` and `certificates` are the inline PEM; `key_password` opens the key, `password` the file.
    """

    type: str = "JKS"
    location: str | None = None
    password: str | None = None
    key_password: str | None = None
    key: str | None = None
    certificates: str | None = None

    @property
    def is_configured(self) -> bool:
        """Return whether there is a store at all."""
        return bool(self.location or self.key or self.certificates)

    def __repr__(self) -> str:
        return f"<StoreSettings {self.type} {self.location or ('inline' if self.is_configured else 'none')}>"


class TlsSettings(Struct, frozen=True, kw_only=True):
    """All TLS settings; `endpoint_identification` is empty if names of servers are not checked."""

    keystore: StoreSettings = StoreSettings()
    truststore: StoreSettings = StoreSettings()
    client_auth: str = "none"
    enabled_protocols: tuple[str, ...] = DEFAULT_PROTOCOLS
    cipher_suites: tuple[str, ...] = ()
    endpoint_identification: str = "https"

    def __repr__(self) -> str:
        return (
            f"<TlsSettings key {self.keystore!r}, trust {self.truststore!r}, client auth {self.client_auth}>"
        )
