"""The pages of the metrics listener: /, /metrics, /healthz and /readyz, and the data of the first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import cache, partial
from http import HTTPStatus
from importlib.resources import files
from time import monotonic_ns

import msgspec
from prometheus_client.exposition import choose_encoder

from kraftd.control_characters import visible_json
from kraftd.metrics.families.board_names import board_families
from kraftd.metrics.families.exposition import FAMILIES, Exposition
from kraftd.metrics.serving.http import TEXT, Request, Response, Stream
from kraftd.metrics.serving.shared_work import SharedWork
from kraftd.metrics.state.health import health
from kraftd.metrics.state.hosted_survey import HostedSurvey, survey_hosted
from kraftd.metrics.state.readings import Readings, broker_of
from kraftd.metrics.state.sliced import WRITE_BUDGET_NS, Sliced
from kraftd.metrics.state.survey import Survey, survey
from kraftd.metrics.status_page.status import status

JSON = "application/json"
HTML = "text/html; charset=utf-8"
EVENTS = "text/event-stream"
EVENT_S = 2.0  # between two events of a stream
SCRAPE_SURVEY_NS = 50_000_000  # of a survey by one scrape; the next one goes on with it
# The page may load nothing from elsewhere; its inline content is its own.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:"
)
_PAGE_HEADERS = (("Content-Security-Policy", _POLICY), ("X-Content-Type-Options", "nosniff"))
_UNKNOWN = b"there are /, /status.json, /metrics, /healthz and /readyz\n"


@cache
def page() -> bytes:
    """The status page: one file, which requests only /events."""
    return files("kraftd.metrics.status_page").joinpath("status.html").read_bytes()


class Pages:
    """Answers requests from the current readings of `read`; `held` gets the nanoseconds for which each part
    of a scrape held the loop. A scrape has the names of the rule sets `names` as well (`board_names`).
    `ask_leader` lets the leader describe the quorum before a status is made. `load_code` ends once what is
    read of the node has its code.
    """

    def __init__(
        self,
        read: Callable[[], Readings],
        held: Callable[[int], None],
        names: tuple[str, ...] = (),
        ask_leader: Callable[[], Awaitable[None]] | None = None,
        load_code: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._read = read
        self._ask_leader = ask_leader
        self._load_code = load_code
        self._families = (*FAMILIES, *board_families(FAMILIES, names))
        self._held = held
        self._survey = Sliced[Survey](held)
        self._hosted = Sliced[HostedSurvey](held)
        self._scrapes = SharedWork[bytes]()
        self._statuses = SharedWork[bytes]()

    async def handle(self, request: Request) -> Response | Stream:
        match request.path:
            case "/metrics":
                return await self._metrics(request.headers.get("accept", ""))
            case "/healthz":
                return Response(HTTPStatus.OK, TEXT, b"ok\n")  # any answer shows that the loop runs
            case "/readyz":
                found = health(self._read())
                status = HTTPStatus.OK if found.ready else HTTPStatus.SERVICE_UNAVAILABLE
                return Response(status, JSON, msgspec.json.encode(found) + b"\n")
            case "/":
                return Response(HTTPStatus.OK, HTML, page(), _PAGE_HEADERS)
            case "/status.json":
                await self._survey_partitions()
                return Response(HTTPStatus.OK, JSON, await self._status() + b"\n")
            case "/events":
                return Stream(EVENTS, self._events())
        return Response(HTTPStatus.NOT_FOUND, TEXT, _UNKNOWN)

    async def _status(self) -> bytes:
        return await self._statuses.get("", self._new_status)

    async def _new_status(self) -> bytes:
        if self._load_code is not None:
            await self._load_code()
        if self._ask_leader is not None:
            await self._ask_leader()
        await self._survey_hosted()
        found = status(self._read(), self._survey.found, self._hosted.found)
        return visible_json(msgspec.json.encode(found))

    async def _events(self) -> AsyncIterator[bytes]:
        """The status as server-sent events, for as long as the peer listens."""
        while True:
            yield b"data: " + await self._status() + b"\n\n"
            await self._survey_partitions()
            await asyncio.sleep(EVENT_S)

    async def _survey_partitions(self, most_ns: int | None = None) -> None:
        """Survey every partition, unless that was done just now, or nothing has changed."""
        found, image = self._survey.found, self._read().node.image
        wanted = found is None or (found.offset != image.offset and self._survey.is_due)
        await self._survey.go_on(lambda: survey(image), wanted, most_ns)

    async def _survey_hosted(self) -> None:
        """Look at what the broker of the process hosts, unless that was done just now."""
        broker = broker_of(self._read())
        if broker is not None:
            await self._hosted.go_on(lambda: survey_hosted(broker), self._hosted.is_due)

    async def _metrics(self, accept: str) -> Response:
        content_type = choose_encoder(accept)[1]
        text = await self._scrapes.get(content_type, partial(self._scrape, accept))
        return Response(HTTPStatus.OK, content_type, text)

    async def _scrape(self, accept: str) -> bytes:
        if self._load_code is not None:
            await self._load_code()
        readings = self._read()
        if readings.node.active:  # the others show what it knows better
            await self._survey_partitions(SCRAPE_SURVEY_NS)
            readings = self._read()
        began_ns = monotonic_ns()
        surveyed = replace(readings, survey=self._survey.found if readings.node.active else None)
        pieces = []
        for piece in Exposition(surveyed, accept, self._families).pieces():
            pieces.append(piece)
            took_ns = monotonic_ns() - began_ns
            if took_ns >= WRITE_BUDGET_NS:
                self._held(took_ns)
                await asyncio.sleep(0)
                began_ns = monotonic_ns()
        text = b"".join(pieces)
        self._held(monotonic_ns() - began_ns)
        return text

    def __repr__(self) -> str:
        return "<Pages / /metrics /healthz /readyz>"
