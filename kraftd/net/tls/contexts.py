"""TLS contexts from stores: one for a listener, one for connections to other nodes.

A pair of contexts is made and tested as a whole, so that one that does not work is never used.
"""

from __future__ import annotations

import datetime
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kraftd.net.tls.cipher_suites import split_suites
from kraftd.security.tls_settings import TlsSettings

if TYPE_CHECKING:
    from kraftd.net.tls.stores import Identity

_VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_SERVED = ("TLSv1.2", "TLSv1.3")
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_HANDSHAKE_STEPS = 20


class TlsContexts:
    """The contexts of a listener or a client until its stores change. Raises ValueError for
    unusable stores.
    """

    def __init__(self, settings: TlsSettings) -> None:
        from kraftd.net.tls.stores import load_identity, load_trusted  # needs cryptography: only with TLS

        self.settings = settings
        self.identity: Identity | None = load_identity(settings.keystore)
        self.trusted: list[bytes] | None = load_trusted(settings.truststore)
        if settings.endpoint_identification.lower() not in ("", "https"):
            raise ValueError(
                f"ssl.endpoint.identification.algorithm={settings.endpoint_identification}: must be "
                "https, or empty to check no names"
            )
        self.client = self._client()
        self.server = self._server() if self.identity is not None else None

    def _server(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        client_auth = self.settings.client_auth.lower()
        if client_auth not in _CLIENT_AUTH:
            raise ValueError(f"ssl.client.auth={client_auth}: must be one of {', '.join(_CLIENT_AUTH)}")
        context.verify_mode = _CLIENT_AUTH[client_auth]
        # No session is resumed: each connection needs a certificate that is valid when it opens, and a
        # handshake without tickets costs a third less.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
        self._set_up(context)
        return context

    def _client(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = bool(self.settings.endpoint_identification)
        self._set_up(context)
        return context

    def _set_up(self, context: ssl.SSLContext) -> None:
        """Configure what both sides share."""
        protocols = list(self.settings.enabled_protocols)
        for name in protocols:
            if name not in _SERVED:
                raise ValueError(f"ssl.enabled.protocols={name}: must be among {', '.join(_SERVED)}")
        if self.settings.cipher_suites:
            newer, older = split_suites(self.settings.cipher_suites)
            if older:
                try:
                    context.set_ciphers(":".join(older))
                except ssl.SSLError:
                    raise ValueError("ssl.cipher.suites: this OpenSSL offers none of them") from None
            protocols = [name for name in protocols if (newer if name == "TLSv1.3" else older)]
        if not protocols:
            raise ValueError("ssl.enabled.protocols: no protocol has a suite of ssl.cipher.suites")
        versions = sorted(_VERSIONS[name] for name in protocols)
        context.minimum_version, context.maximum_version = versions[0], versions[-1]
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        # Java takes any certificate of a trust store as the end of a chain, not only self-signed ones.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.trusted is None:
            context.load_default_certs()
        else:
            for certificate in self.trusted:
                context.load_verify_locations(cadata=certificate)
        if self.identity is not None:
            with _file_of(self.identity.key + self.identity.chain) as path:
                try:
                    context.load_cert_chain(path)
                except ssl.SSLError as error:
                    raise ValueError(f"ssl.keystore: OpenSSL does not take it: {error.reason}") from None

    @property
    def expires_at(self) -> datetime.datetime | None:
        """When the first certificate of the own chain expires."""
        return None if self.identity is None else self.identity.not_after

    def refusal(self, now: datetime.datetime) -> str | None:
        """The reason why these contexts must not replace working ones; None if they may."""
        if self.identity is not None:
            if self.identity.not_after <= now:
                return f"its certificate expired at {self.identity.not_after:%Y-%m-%d %H:%M:%S} UTC"
            if self.identity.not_before > now:
                return f"its certificate is valid from {self.identity.not_before:%Y-%m-%d %H:%M:%S} UTC on"
        return None

    def trusts_itself(self) -> bool:
        """Return whether two nodes with these stores accept each other."""
        if self.server is None:
            return True
        context = self._client()
        context.check_hostname = False
        return _handshake_works(self.server, context)

    def __repr__(self) -> str:
        return f"<TlsContexts {self.identity!r} trusting {len(self.trusted or ()) or 'the system'}>"


@contextmanager
def _file_of(data: bytes) -> Iterator[str]:
    """A path that holds these bytes, in memory if the system can: the standard library reads keys only from
    files.
    """
    try:
        descriptor = os.memfd_create("tls", os.MFD_CLOEXEC)
        path = f"/proc/self/fd/{descriptor}"
    except (AttributeError, OSError):
        import tempfile  # seldom needed, and slow to load

        descriptor, path = tempfile.mkstemp()
    try:
        os.write(descriptor, data)
        yield path
    finally:
        os.close(descriptor)
        if not path.startswith("/proc/"):
            with suppress(OSError):
                os.unlink(path)


def _handshake_works(server: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """Return whether the two complete a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_side=False),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    left = list(sides)
    for _ in range(_HANDSHAKE_STEPS):
        for side in list(left):
            try:
                side.do_handshake()
                left.remove(side)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
        if not left:
            break
    try:  # in TLS 1.3 the client learns of a refusal with its first read
        sides[0].read(1)
    except ssl.SSLWantReadError:
        return not left
    except ssl.SSLError:
        return False
    return not left
