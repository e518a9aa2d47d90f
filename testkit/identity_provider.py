"""An identity provider on loopback: its token endpoint grants signed tokens, and servers fetch its keys."""

from __future__ import annotations

import base64
import json
import threading
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from kraftd.net.tls.contexts import TlsContexts
from kraftd.security.tls_settings import StoreSettings, TlsSettings
from testkit.certificates import Authority

HOST = "127.0.0.1"
KEY_ID = "k"


@cache
def _signing_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class IdentityProvider:
    """Grants tokens to its clients, each a pair of id and secret; the id becomes the subject.

    `requests` has the headers (names in lower case) and the body of each request for a token. If `answer` is
    set, a status and a body, it answers every request. Keys are redirected to `moved_to`, except those there.
    """

    def __init__(
        self,
        clients: dict[str, str],
        *,
        lifetime_s: int = 600,
        authority: Authority | None = None,
        port: int = 0,
    ) -> None:
        self.clients, self.lifetime_s = clients, lifetime_s
        self.requests: list[tuple[dict[str, str], str]] = []
        self.answer: tuple[int, bytes] | None = None
        self.moved_to = ""
        self.scheme = "http" if authority is None else "https"
        self._key = _signing_key()
        self._authority = authority
        self._port = port
        self._server: ThreadingHTTPServer | None = None

    @property
    def address(self) -> str:
        return f"{self.scheme}://{HOST}:{self._port}"

    @property
    def token_url(self) -> str:
        return f"{self.address}/token"

    @property
    def jwks_url(self) -> str:
        return f"{self.address}/keys"

    @property
    def jwks(self) -> str:
        public = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return json.dumps({"keys": [{**public, "kid": KEY_ID}]})

    def write_jwks(self, path: Path) -> Path:
        """Write the keys to a file, for servers that do not fetch them."""
        path.write_text(self.jwks)
        return path

    def write_authority(self, path: Path) -> Path:
        """Write the trust store of its clients, for a provider over TLS."""
        assert self._authority is not None
        return self._authority.write_pem(path)

    def token(self, subject: str) -> str:
        now_s = int(time.time())
        claims = {"sub": subject, "iss": "issuer", "iat": now_s, "exp": now_s + self.lifetime_s}
        return jwt.encode(claims, self._key, "RS256", headers={"kid": KEY_ID})

    def start(self) -> Self:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                headers = {name.lower(): value for name, value in self.headers.items()}
                provider.requests.append((headers, body))
                self._send(*provider.answered(headers.get("authorization", "")))

            def do_GET(self) -> None:
                moved = provider.moved_to not in ("", f"{provider.address}{self.path}")
                self._send(302 if moved else 200, provider.jwks.encode())

            def _send(self, status: int, data: bytes) -> None:
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", provider.moved_to or provider.jwks_url)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        server = self._server = ThreadingHTTPServer((HOST, self._port), Handler)
        server.daemon_threads = True
        self._port = server.server_address[1]
        if self._authority is not None:
            issued = self._authority.issue("CN=idp")
            store = StoreSettings(type="PEM", key=issued.key_pem, certificates=issued.chain_pem)
            context = TlsContexts(TlsSettings(keystore=store)).server
            assert context is not None
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def answered(self, authorization: str) -> tuple[int, bytes]:
        """The status and the body for a client with these credentials."""
        if self.answer is not None:
            return self.answer
        shown = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        client_id, _, secret = shown.partition(":")
        if self.clients.get(client_id) != secret:
            return 401, b'{"error": "invalid_client", "error_description": "wrong credentials"}'
        answer = {
            "access_token": self.token(client_id),
            "token_type": "Bearer",
            "expires_in": self.lifetime_s,
        }
        return 200, json.dumps(answer).encode()

    def stop(self) -> None:
        """Stop listening; the server can be started again on the same port."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def __enter__(self) -> Self:
        return self.start() if self._server is None else self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<IdentityProvider at {self.address}, asked {len(self.requests)} times>"
