"""A blocking client that logs in: one connection, one request at a time, in the latest common version."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse
from kraftd.security.sasl.client_requests import ANSWERS, login_requests
from kraftd.security.sasl.mechanism import ClientExchange, SaslFailed
from kraftd.wire.api import ApiKey, valid_versions
from kraftd.wire.errors import ProtocolError
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import api_key

API_VERSIONS_VERSION = 3
MAX_FRAME_BYTES = 100 * 1024 * 1024

Answer = TypeVar("Answer", bound=Message)


class Unreachable(Exception):
    """No server listens there, or none that answers in Kafka's protocol."""


class NoAnswer(Unreachable):
    """No answer came in time: a controller may be frozen, or its host gone."""


class Client:
    """A connection to one controller; it begins with the controller's versions.

    Every method may raise Unreachable, and NoAnswer when there is none within `timeout_s`.
    """

    client_id = "kraftd"

    def __init__(
        self,
        host: str,
        port: int,
        timeout_s: float,
        tls: ssl.SSLContext | None = None,
        login: Callable[[], ClientExchange] | None = None,
    ) -> None:
        self.address = f"{host}:{port}"
        self._correlation_id = 0
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
            if tls is not None:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        except TimeoutError:
            raise self._no_answer() from None
        except OSError as error:
            why = getattr(error, "verify_message", None) or error.strerror or str(error)
            raise self._failure(why) from None
        answer = self._ask(
            ApiKey.API_VERSIONS,
            API_VERSIONS_VERSION,
            ApiVersionsRequest(client_software_name="kraftd", client_software_version="1"),
            ApiVersionsResponse,
        )
        self._versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        if login is not None:
            self._log_in(login)

    def _log_in(self, begin: Callable[[], ClientExchange]) -> None:
        """Authenticate, right after the versions."""
        try:
            login = login_requests(begin())
            request = next(login)
            while True:
                request = login.send(self.ask(ApiKey(api_key(request)), request, ANSWERS[type(request)]))
        except StopIteration:
            return
        except SaslFailed as failure:
            raise self._failure(f"login: {failure}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def __repr__(self) -> str:
        return f"<Client of {self.address}>"

    def ask(self, key: ApiKey, request: Message, answer: type[Answer]) -> Answer:
        """The answer to a request in the latest version that both sides speak."""
        offered, own = self._versions.get(key), valid_versions(key)
        if offered is None or own is None or min(offered[1], own[1]) < max(offered[0], own[0]):
            raise self._failure(f"it does not serve {key.name}; is it a controller's listener?")
        return self._ask(key, min(offered[1], own[1]), request, answer)

    def _ask(self, key: ApiKey, version: int, request: Message, answer: type[Answer]) -> Answer:
        self._correlation_id += 1
        parts = encode_request(key, version, self._correlation_id, self.client_id, request)
        try:
            self._socket.sendall(b"".join(parts))
            size = int.from_bytes(self._read(4), "big")
            if size > MAX_FRAME_BYTES:
                raise self._failure("it does not speak Kafka's protocol")
            header, message = parse_response(key, version, self._read(size))
        except TimeoutError:
            raise self._no_answer() from None
        except OSError as error:
            raise self._failure(error.strerror or str(error)) from None
        except ProtocolError as error:
            raise self._failure(f"its answer cannot be read: {error}") from None
        if header.correlation_id != self._correlation_id or not isinstance(message, answer):
            raise self._failure("its answer is to another request")
        return message

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise self._failure("it closed the connection")
            data += part
        return bytes(data)

    def _no_answer(self) -> Exception:
        return NoAnswer(f"{self.address}: no answer in time")

    def _failure(self, why: str) -> Exception:
        return Unreachable(f"{self.address}: {why}")
