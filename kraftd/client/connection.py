"""One connection to one node: requests in the latest version that both sides speak, answers by their ids.

A `Setup` secures the connection: it may return a TLS context, and may authenticate before the first request.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from contextlib import suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Protocol, Self, TypeVar

from kraftd.client.failures import NO_ANSWER, NO_CONNECTION, NoAnswer, Unreachable
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse
from kraftd.net.splitter import other_protocol
from kraftd.types import address_text
from kraftd.wire.api import ApiKey, is_known, valid_versions
from kraftd.wire.errors import ProtocolError
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import api_key

API_VERSIONS_VERSION = 3
OF_BROKERS = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS)
CLOSED = "it closed the connection"
MAX_FRAME_BYTES = 100 * 1024 * 1024
READ_AHEAD_BYTES = 4 << 20  # of one connection, before reading pauses

_OTHER_PROTOCOLS: dict[str | None, str] = {
    "TLS": "it speaks TLS, and was asked without (--command-config names a file with security.protocol)",
    "HTTP": "it speaks HTTP: an HTTP server has that port, no node",
}

Answer = TypeVar("Answer", bound=Message)


class Setup(Protocol):
    """The security of connections."""

    def tls(self, host: str) -> ssl.SSLContext | None:
        """The context of a connection to a host, None for plaintext."""

    async def authenticate(self, connection: Connection) -> None:
        """Run SASL's exchange, right after the versions are known. Raises Refused."""


class Plaintext:
    """Neither TLS nor SASL."""

    def tls(self, host: str) -> ssl.SSLContext | None:
        return None

    async def authenticate(self, connection: Connection) -> None:
        pass


# The default security of connections: a command's --command-config.
default_setup: ContextVar[Setup | None] = ContextVar("default_setup", default=None)


class Connection:
    """A connection that is ready for requests; several may wait for their answers at once.

    Every method may raise Unreachable, and NoAnswer when nothing comes within `timeout_s`.
    """

    def __init__(
        self, host: str, port: int, timeout_s: float, setup: Setup | None = None, client_id: str = "kraftd"
    ) -> None:
        self.host, self.port = host, port
        self.address = address_text((host, port))
        self.versions: dict[int, tuple[int, int]] = {}
        self._timeout_s = timeout_s
        self._by_default = setup is None
        self._setup = setup or default_setup.get() or Plaintext()
        self._client_id = client_id
        self._correlation_id = 0
        self._waiting: dict[int, tuple[int, int, asyncio.Future[Message]]] = {}
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._receiving: asyncio.Task[None] | None = None
        self._broken: Unreachable | None = None

    def __repr__(self) -> str:
        return f"<Connection to {self.address}, {len(self._waiting)} requests under way>"

    @classmethod
    async def open(
        cls, host: str, port: int, timeout_s: float, setup: Setup | None = None, client_id: str = "kraftd"
    ) -> Self:
        """Connect, learn which versions the node speaks, authenticate."""
        connection = cls(host, port, timeout_s, setup, client_id)
        try:
            await connection._connect()
            hello = ApiVersionsRequest(client_software_name="kraftd", client_software_version="1")
            answer = await connection.ask_in(hello, API_VERSIONS_VERSION, ApiVersionsResponse)
            connection.versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
            await connection._setup.authenticate(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def is_open(self) -> bool:
        return self._broken is None and self._writer is not None

    def serves(self, key: ApiKey, first_version: int = 0) -> bool:
        """Return whether the node speaks a version of the API, from that one on, that is known here."""
        version = self._version(key)
        return version is not None and version >= first_version

    async def ask(
        self,
        request: Message,
        answer: type[Answer],
        *,
        max_version: int = 32767,
        timeout_s: float | None = None,
    ) -> Answer:
        """The answer to a request in the latest version that both sides speak, up to max_version."""
        key = api_key(request)
        version = self._version(key, max_version)
        if version is None:
            name = ApiKey(key).name if is_known(key) else str(key)
            raise Unreachable(f"{self.address}: it does not serve {name}{self._kind_hint(key)}")
        return await self.ask_in(request, version, answer, timeout_s=timeout_s)

    def _kind_hint(self, key: int) -> str:
        """What to do if it is a controller, and brokers are asked this."""
        is_controller = self.serves(ApiKey.VOTE) and not self.serves(ApiKey.METADATA)
        return ": it is a controller, name a broker" if is_controller and key in OF_BROKERS else ""

    async def ask_in(
        self, request: Message, version: int, answer: type[Answer], *, timeout_s: float | None = None
    ) -> Answer:
        """The answer to a request in a version."""
        if self._broken is not None:
            raise self._broken
        assert self._writer is not None
        key = api_key(request)
        self._correlation_id += 1
        number = self._correlation_id
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (key, version, future)
        try:
            parts = encode_request(key, version, number, self._client_id, request)
            self._writer.write(b"".join(parts))
            async with asyncio.timeout(self._timeout_s if timeout_s is None else timeout_s):
                await self._writer.drain()
                message = await future
        except TimeoutError:
            raise NoAnswer(f"{self.address}: {NO_ANSWER}") from None
        except OSError as error:
            raise self._failure(reason(error)) from None
        finally:
            self._waiting.pop(number, None)
        if not isinstance(message, answer):
            raise self._failure("its answer is to another request")
        return message

    async def close(self) -> None:
        """Close it; requests that still wait for an answer fail with Unreachable."""
        self._break(self._failure("the connection was closed"))
        if self._receiving is not None:
            self._receiving.cancel()
            with suppress(asyncio.CancelledError):
                await self._receiving
            self._receiving = None
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await self._writer.wait_closed()
            self._writer = None

    async def _connect(self) -> None:
        try:
            context = self._setup.tls(self.host)
            async with asyncio.timeout(self._timeout_s):
                self._reader, self._writer = await asyncio.open_connection(
                    self.host,
                    self.port,
                    limit=READ_AHEAD_BYTES,
                    ssl=context,
                    server_hostname=self.host if context else None,
                )
        except TimeoutError:  # with TLS, the handshake may be what takes too long
            what = NO_CONNECTION if context is None else NO_ANSWER
            raise NoAnswer(f"{self.address}: {what}") from None
        except ssl.SSLError as error:
            why = getattr(error, "verify_message", "") or error.reason or error
            raise self._failure(f"TLS: {why}") from None
        except OSError as error:
            if context is not None and error.errno is None and not str(error):  # asyncio's error for it
                raise self._failure(f"{CLOSED} in the TLS handshake; is its listener a TLS one?") from None
            raise self._failure(reason(error)) from None
        except (UnicodeError, ValueError, OverflowError):
            raise self._failure("that is no host and port to connect to") from None
        self._receiving = asyncio.create_task(self._receive(self._reader))

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        """Pass each answer to its waiting request, until the connection ends."""
        try:
            while True:
                head = await reader.readexactly(4)
                size = int.from_bytes(head, "big", signed=True)
                if not 4 <= size <= MAX_FRAME_BYTES:
                    raise self._failure(
                        _OTHER_PROTOCOLS.get(other_protocol(head), "it does not speak Kafka's protocol")
                    )
                self._answer(await reader.readexactly(size))
        except Unreachable as error:
            self._break(error)
        except asyncio.IncompleteReadError:
            self._break(
                self._failure(CLOSED if self.versions else f"{CLOSED} at the first request{self._hint}")
            )
        except OSError as error:
            self._break(self._failure(reason(error)))

    def _answer(self, frame: bytes) -> None:
        number = int.from_bytes(frame[:4], "big", signed=True)
        waiting = self._waiting.get(number)
        if waiting is None:
            if number > self._correlation_id or number < 1:
                raise self._failure("its answer is to another request")
            return  # the answer came too late
        key, version, future = waiting
        try:
            _, message = parse_response(key, version, frame)
        except ProtocolError as error:
            raise self._failure(f"its answer cannot be read: {error}") from None
        if not future.done():
            future.set_result(message)

    def _break(self, error: Unreachable) -> None:
        self._broken = self._broken or error
        for _, _, future in self._waiting.values():
            if not future.done():
                future.set_exception(error)

    def _version(self, key: int, max_version: int = 32767) -> int | None:
        offered, own = self.versions.get(key), valid_versions(key)
        if offered is None:
            return None
        version = min(offered[1], own[1], max_version)
        return version if version >= max(offered[0], own[0]) else None

    @property
    def _hint(self) -> str:
        """The probable cause if a node refuses a command's plaintext connection."""
        is_plain = self._by_default and self._setup.tls(self.host) is None
        return "; see its log, or give --command-config if its listener is secured" if is_plain else ""

    def _failure(self, why: str) -> Unreachable:
        return Unreachable(f"{self.address}: {why}")


def reason(error: OSError) -> str:
    """The operating system's reason, without the addresses that asyncio adds."""
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    number = error.errno
    if number is None and (found := re.search(r"\[Errno (\d+)\]", str(error))):
        number = int(found[1])  # the first's, of several addresses of one name
    return os.strerror(number) if number else str(error)
