"""A client's file with a byte order mark is not mistaken for one without security."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from kraftd.client.connection import Connection
from kraftd.client.failures import Unreachable
from kraftd.client.secured import load_client_security, secured
from kraftd.config import ConfigError
from testkit.certificates import Authority

LINES = b"security.protocol=PLAINTEXT\n"


def test_a_byte_order_mark_before_a_key_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(b"\xef\xbb\xbf" + LINES)
    with pytest.raises(
        ConfigError, match=r"^security.protocol: the file begins with a UTF-8 byte order mark"
    ):
        load_client_security(path)
    path.write_bytes(b"\xef\xbb\xbf# a client\n" + LINES)
    load_client_security(path)


def test_an_expired_certificate_is_named_as_such(tmp_path: Path) -> None:
    authority = Authority()
    trusted = authority.write_pem(tmp_path / "ca.pem")
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(authority.issue("CN=broker", days=-1).write_pem(tmp_path / "old.pem"))
    file = tmp_path / "client.properties"
    file.write_text(f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={trusted}\n")

    async def connect() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=served)
        port = server.sockets[0].getsockname()[1]
        try:
            await Connection.open("127.0.0.1", port, 30.0, secured(load_client_security(file)))
        finally:
            server.close()

    with pytest.raises(Unreachable, match="TLS: certificate has expired"):
        asyncio.run(connect())
