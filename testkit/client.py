"""A minimal client: one blocking socket, requests by message class, one at a time or pipelined."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from typing import Any

from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import api_key


class Client:
    """A connection to a broker or controller, over TLS with a context, from an address.

    ConnectionError when the other side closes it.
    """

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str = "test",
        timeout_s: float = 30,
        tls: ssl.SSLContext | None = None,
        source: str = "",
    ) -> None:
        self.client_id, self.correlation_id, self._peer = client_id, 0, f"{host}:{port}"
        own = (source, 0) if source else None
        self.socket = socket.create_connection((host, port), timeout=timeout_s, source_address=own)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        self._stream = self.socket.makefile("rb", buffering=1 << 16)

    def __repr__(self) -> str:
        return f"<Client {self.client_id} of {self._peer} correlation id {self.correlation_id}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self.socket.close()

    def frame(self, request: Message, version: int) -> bytes:
        """A request as the bytes to send, its length first, under the next correlation id."""
        self.correlation_id += 1
        return b"".join(
            encode_request(api_key(request), version, self.correlation_id, self.client_id, request)
        )

    def receive_frame(self) -> bytes:
        """The next response, without its length."""
        size = int.from_bytes(self._read(4), "big")
        return self._read(size)

    def _read(self, size: int) -> bytes:
        data: bytes = self._stream.read(size)
        if len(data) < size:
            raise ConnectionError("the connection was closed")
        return data

    def call(self, request: Message, version: int) -> Any:
        """Send one request and decode its response."""
        return self.pipeline([request], version)[0]

    def pipeline(self, requests: Sequence[Message], version: int) -> list[Any]:
        """Send requests in one write, then read their responses, which come in the same order."""
        first = self.correlation_id + 1
        self.socket.sendall(b"".join(self.frame(request, version) for request in requests))
        responses = []
        for expected, request in enumerate(requests, first):
            header, response = parse_response(api_key(request), version, self.receive_frame())
            if header.correlation_id != expected:
                raise ConnectionError(f"correlation id {header.correlation_id}, not {expected}")
            responses.append(response)
        return responses
