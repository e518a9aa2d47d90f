"""Requests to other nodes: one connection a destination, opened when first needed, requests pipelined on it.

Every connection opens with ApiVersions, as Kafka's clients do; each request then goes in the highest version
that both sides know. A lost or refused connection is reported at once. Like the listening side it has
asyncio's protocol methods without needing asyncio: opening connections, timers and the time come from
outside. A login, if needed, follows ApiVersions, and is repeated on the open connection before the session
ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Any, Protocol

from msgspec import Struct

from kraftd.ground.destination import Destination
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse
from kraftd.named_tuple import NamedTuple
from kraftd.net.link import Link
from kraftd.net.older_versions import NO_VERSION, REWRITES, agreed_version
from kraftd.net.traffic import Traffic
from kraftd.security.sasl.client_requests import HANDSHAKE_VERSION, LoginRequests, login_requests
from kraftd.security.sasl.mechanism import ClientExchange, SaslFailed
from kraftd.wire.api import ApiKey, valid_versions
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.errors import EncodeError, ProtocolError
from kraftd.wire.frames import correlation_id, encode_request, parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import api_key

API_VERSIONS_VERSION = 4
LOGIN_AGAIN_RATIO = 0.85  # of a session's life, as Kafka's clients at the earliest


class Failure(Enum):
    """The reason why a request got no answer."""

    UNREACHABLE = "refused or lost"
    TIMED_OUT = "no answer in time"
    UNSUPPORTED = "no version carries it"


class Handler(Protocol):
    """The owner of requests. Never called from within `send`."""

    def answered(self, tag: Hashable, message: Message) -> None:
        """The answer to the request of that tag."""

    def failed(self, tag: Hashable, failure: Failure) -> None:
        """The request of that tag gets no answer."""

    def lost(self, address: Destination, reason: str) -> None:
        """The connection was refused, or lost by the other side; called before its requests fail."""

    def silent(self, address: Destination, reason: str) -> None:
        """No answer came in time, or no connection; called before the requests fail."""


class Timer(Protocol):
    def cancel(self) -> None: ...


class Wiring(Protocol):
    """The interface of the loop for an outbound side."""

    def now_ms(self) -> int: ...

    def call_soon(self, function: Callable[..., object], *arguments: Any) -> object: ...

    def call_later_ms(self, delay_ms: int, function: Callable[[], object]) -> Timer: ...

    def open(self, address: Destination, link: Link) -> None:
        """Begin to connect with the link as protocol; `link.not_opened(why)` if it cannot."""


class Times(NamedTuple):
    """Kafka's request.timeout.ms, reconnect.backoff.ms and reconnect.backoff.max.ms of a raft client.

    Each request in a row without an answer in time has twice as long, at most `longest_timeout_ms`: on a
    starved machine no answer might ever come within the first time.
    """

    request_timeout_ms: int = 2000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 500
    longest_timeout_ms: int = 0  # 0: they all have the same

    def after(self, timeouts: int) -> int:
        """How long a request may take after so many in a row that had no answer in time."""
        longer_ms = self.request_timeout_ms << min(timeouts, 16)
        return max(self.request_timeout_ms, min(longer_ms, self.longest_timeout_ms))


class _Outgoing(Struct):
    tag: Hashable
    message: Message
    deadline_ms: int
    version: int | None  # at most


class _InFlight(Struct):
    tag: Hashable
    correlation_id: int
    key: int
    version: int
    deadline_ms: int


_SETUP = object()  # the tag of a channel's own requests


class Outbound:
    """All connections of one client id."""

    def __init__(
        self,
        client_id: str,
        software: tuple[str, str],
        handler: Handler,
        wiring: Wiring,
        times: Times,
        login: Callable[[], ClientExchange] | None = None,
    ) -> None:
        self.client_id = client_id
        self.software = software
        self.handler = handler
        self.wiring = wiring
        self.times = times
        self.login = login  # begins a login if servers want one
        # Takes an answer as it came, by the tag and the version of its request. True: it is taken. A message:
        # it is also the next request of that tag, at most in that version.
        self.follow: Callable[[Hashable, int, memoryview], Message | bool] | None = None
        self.traffic = Traffic()
        self._channels: dict[Destination, Channel] = {}

    def send(self, tag: Hashable, address: Destination, message: Message, version: int | None = None) -> None:
        """Send a request, at most in a version; exactly one of `answered` and `failed` follows with this
        tag.
        """
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = Channel(self, address)
        channel.send(tag, message, version)

    def served(self, address: Destination) -> frozenset[int] | None:
        """The APIs that the other side serves; None while unknown."""
        channel = self._channels.get(address)
        return None if channel is None or channel.versions is None else frozenset(channel.versions)

    def close(self) -> None:
        """Close every connection, without further calls of the handler."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    def __repr__(self) -> str:
        return (
            f"<Outbound {self.client_id}: {' '.join(map(repr, self._channels.values())) or 'no destination'}>"
        )


class Channel:
    """One destination: its connection, if any, and its requests."""

    def __init__(self, outbound: Outbound, address: Destination) -> None:
        self.address = address
        self.versions: dict[int, tuple[int, int]] | None = None  # of the other side, once known
        self._agreed: dict[tuple[type[Message], int | None], tuple[int, int]] = {}  # see `agreed_version`
        self._ready = False  # requests may go out
        self._login: LoginRequests | None = None  # that is under way
        self._login_again_ms: int | None = None
        self._outbound = outbound
        self._link: Link | None = None
        self._waiting: deque[_Outgoing] = deque()  # for the connection and its ApiVersions
        self._in_flight: deque[_InFlight] = deque()
        self._correlation_id = 0
        self._failures = 0  # attempts in a row without an answer
        self._timeouts = 0  # requests in a row that had no answer in time
        self._not_before_ms = 0
        self._timer: Timer | None = None
        self._is_overdue = False  # the oldest request is; it fails if no answer is read now

    @property
    def traffic(self) -> Traffic:
        return self._outbound.traffic

    # -- requests

    def send(self, tag: Hashable, message: Message, version: int | None = None) -> None:
        wiring = self._outbound.wiring
        now_ms = wiring.now_ms()
        if self._link is None and now_ms < self._not_before_ms:
            wiring.call_soon(self._outbound.handler.failed, tag, Failure.UNREACHABLE)
            return
        deadline_ms = now_ms + self._timeout_ms
        if self._ready and self._login_again_ms is not None and now_ms >= self._login_again_ms:
            self._begin_login()
        if self._ready:
            self._write(tag, message, deadline_ms, version)
            return
        self._waiting.append(_Outgoing(tag, message, deadline_ms, version))
        self._watch()
        if self._link is None:
            self._link = Link(self)
            wiring.open(self.address, self._link)

    def close(self) -> None:
        """Close the channel without reporting the fate of its requests."""
        self._waiting.clear()
        self._in_flight.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _write(self, tag: Hashable, message: Message, deadline_ms: int, at_most: int | None) -> None:
        kind = type(message), at_most
        agreed = self._agreed.get(kind)
        if agreed is None:
            assert self.versions is not None
            agreed = self._agreed[kind] = agreed_version(*kind, self.versions)
        key, version = agreed
        parts = None
        if version != NO_VERSION:
            try:
                parts = self._frame(key, version, message)
            except EncodeError:  # the version cannot carry the request
                pass
        if parts is None:
            self._outbound.wiring.call_soon(self._outbound.handler.failed, tag, Failure.UNSUPPORTED)
            return
        self._write_framed(tag, key, version, deadline_ms, parts)

    def _write_framed(
        self, tag: Hashable, key: int, version: int, deadline_ms: int, parts: list[Any]
    ) -> None:
        """Write the request that was framed last, whose answer is due until then."""
        self._in_flight.append(_InFlight(tag, self._correlation_id, key, version, deadline_ms))
        self._watch()
        assert self._link is not None
        self._link.write(parts)

    def _frame(self, key: int, version: int, message: Message) -> list[Any]:
        self._correlation_id += 1
        rewrite = REWRITES.get(type(message))
        if rewrite is not None:
            message = rewrite(message, version)
        return encode_request(key, version, self._correlation_id, self._outbound.client_id, message)

    # -- events of its link

    def opened(self) -> None:
        """Begin a connection: ask for versions first."""
        self._request_versions(API_VERSIONS_VERSION)

    def frame_received(self, frame: memoryview) -> None:
        """Handle the next answer. Raises ProtocolError."""
        number = correlation_id(frame)
        if not self._in_flight or self._in_flight[0].correlation_id != number:
            raise ProtocolError("ResponseHeader", "correlation_id", 0, f"{number} is not the next")
        outgoing = self._in_flight[0]
        _, message = parse_response(outgoing.key, outgoing.version, frame)
        self._in_flight.popleft()
        self._is_overdue = False
        if outgoing.tag is not _SETUP:
            self._timeouts = 0
            self._outbound.handler.answered(outgoing.tag, message)
        elif isinstance(message, ApiVersionsResponse):
            self._on_versions(outgoing.version, message)
        else:
            self._on_login_answer(message)
        self._rest()

    def follow(self, frame: memoryview) -> bool:
        """Let the next answer be taken as it came, and send what follows; return whether it is taken."""
        follow, in_flight = self._outbound.follow, self._in_flight
        if follow is None or not in_flight:
            return False
        outgoing = in_flight[0]
        if outgoing.tag is _SETUP or outgoing.correlation_id != correlation_id(frame):
            return False
        following = follow(outgoing.tag, outgoing.version, frame)
        if following is False:
            return False
        if not in_flight or in_flight[0] is not outgoing:
            return True  # closed meanwhile
        in_flight.popleft()
        self._is_overdue = False
        self._timeouts = 0
        if following is True:
            self._rest()
        elif self._ready and self._login_again_ms is None:
            parts = self._frame(outgoing.key, outgoing.version, following)
            deadline_ms = self._outbound.wiring.now_ms() + self._outbound.times.request_timeout_ms
            self._write_framed(outgoing.tag, outgoing.key, outgoing.version, deadline_ms, parts)
        else:
            self.send(outgoing.tag, following, outgoing.version)
        return True

    def _rest(self) -> None:
        """Wait for nothing, unless a request followed: else the timer would wake an idle process."""
        if self._timer is not None and not self._in_flight and not self._waiting:
            self._timer.cancel()
            self._timer = None

    def link_ended(self, reason: str) -> None:
        """Handle that the connection was refused, lost, or is unusable."""
        self._end(reason)

    # -- answers

    def _request_versions(self, version: int) -> None:
        request = ApiVersionsRequest(*self._outbound.software) if version >= 3 else ApiVersionsRequest()
        self._request(ApiKey.API_VERSIONS, version, request)

    def _request(self, key: ApiKey, version: int, request: Message) -> None:
        """Send a request of the channel itself."""
        parts = self._frame(key, version, request)
        deadline_ms = self._outbound.wiring.now_ms() + self._timeout_ms
        self._write_framed(_SETUP, key, version, deadline_ms, parts)

    def _on_versions(self, requested_version: int, response: ApiVersionsResponse) -> None:
        versions = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and requested_version > 0:
            _, highest = versions.get(ApiKey.API_VERSIONS, (0, 0))
            self._request_versions(min(highest, requested_version - 1))
            return
        if response.error_code:
            self._end(f"it answered ApiVersions with error {response.error_code}")
            return
        self.versions, self._agreed = versions, {}
        if self._outbound.login is None:
            self._become_ready()
        else:
            self._begin_login()

    def _become_ready(self) -> None:
        self._ready = True
        self._failures = 0
        waiting, self._waiting = self._waiting, deque()
        for outgoing in waiting:
            self._write(outgoing.tag, outgoing.message, outgoing.deadline_ms, outgoing.version)

    # -- logging in

    def _begin_login(self) -> None:
        """Log in, for the first time or anew; requests wait meanwhile."""
        assert self._outbound.login is not None
        self._ready = False
        self._login_again_ms = None
        try:
            self._login = login_requests(self._outbound.login())
            request = next(self._login)
        except SaslFailed as failure:
            self._end(f"login: {failure}")
            return
        self._request_login(request)

    def _on_login_answer(self, message: Message) -> None:
        assert self._login is not None
        try:
            request = self._login.send(message)
        except SaslFailed as failure:
            self._end(f"login: {failure}")
        except StopIteration as logged_in:
            self._login = None
            session_lifetime_ms = logged_in.value.session_lifetime_ms
            if session_lifetime_ms > 0:
                lasts_ms = int(session_lifetime_ms * LOGIN_AGAIN_RATIO)
                self._login_again_ms = self._outbound.wiring.now_ms() + lasts_ms
            self._become_ready()
        else:
            self._request_login(request)

    def _request_login(self, request: Message) -> None:
        assert self.versions is not None
        key = ApiKey(api_key(request))
        offered = self.versions.get(key, (0, 0))[1] if key == ApiKey.SASL_AUTHENTICATE else HANDSHAKE_VERSION
        self._request(key, min(valid_versions(key)[1], offered), request)

    # -- ending

    def _end(self, reason: str, failure: Failure = Failure.UNREACHABLE) -> None:
        """End the connection; notify the handler of the loss first, then of each failed request."""
        times, handler = self._outbound.times, self._outbound.handler
        if not self._ready:  # one that has worked may be retried at once
            backoff_ms = times.reconnect_backoff_ms << min(self._failures, 16)
            self._not_before_ms = self._outbound.wiring.now_ms() + min(
                backoff_ms, times.reconnect_backoff_max_ms
            )
            self._failures += 1
        tags = [one.tag for one in self._in_flight if one.tag is not _SETUP]
        tags += [one.tag for one in self._waiting]
        self._in_flight.clear()
        self._waiting.clear()
        self.versions = self._login = self._login_again_ms = None
        self._ready = self._is_overdue = False
        link, self._link = self._link, None
        if link is not None:
            link.close()
        if failure is Failure.UNREACHABLE:
            handler.lost(self.address, reason)
        else:
            handler.silent(self.address, reason)
        for tag in tags:
            handler.failed(tag, failure)

    # -- time

    def _watch(self) -> None:
        """Check the oldest request when its time is up; one timer per channel, postponed only then."""
        if self._timer is not None:
            return
        oldest = self._oldest_deadline_ms()
        if oldest is not None:
            wiring = self._outbound.wiring
            self._timer = wiring.call_later_ms(max(1, oldest - wiring.now_ms()), self._check_deadline)

    @property
    def _timeout_ms(self) -> int:
        return self._outbound.times.after(self._timeouts)

    def _oldest_deadline_ms(self) -> int | None:
        queues = (self._in_flight, self._waiting)
        return min((queue[0].deadline_ms for queue in queues if queue), default=None)

    def _check_deadline(self) -> None:
        self._timer = None
        oldest = self._oldest_deadline_ms()
        if oldest is None or oldest > self._outbound.wiring.now_ms():
            self._watch()
        elif not self._is_overdue:  # a timer that rings late rings before the answers that have come are read
            self._is_overdue = True
            self._timer = self._outbound.wiring.call_later_ms(1, self._check_deadline)
        else:
            self._timeouts += 1
            is_open = self._link is not None and self._link.is_open
            self._end("no answer in time" if is_open else "no connection in time", Failure.TIMED_OUT)

    def __repr__(self) -> str:
        state = "closed" if self._link is None else "ready" if self._ready else "opening"
        return (
            f"<Channel to {self.address!r} {state}, {len(self._in_flight) + len(self._waiting)} unanswered>"
        )
