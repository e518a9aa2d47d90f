"""The pages of the metrics listener: /metrics, /healthz and /readyz."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from time import monotonic_ns

import msgspec

from kraftd.metrics.exposition import Exposition
from kraftd.metrics.health import health
from kraftd.metrics.http import TEXT, Request, Response
from kraftd.metrics.readings import Readings

JSON = "application/json"
TURN_NS = 2_000_000  # of writing a scrape's text, before others have their turn
_PAGES = b"kraftd\n\n/metrics  for Prometheus\n/healthz  200 while it lives\n/readyz   200 once it serves\n"


class Pages:
    """Answers requests from what `read` says at that moment; `held` is told how many nanoseconds each turn
    of writing a scrape held the loop.
    """

    def __init__(self, read: Callable[[], Readings], held: Callable[[int], None]) -> None:
        self._read = read
        self._held = held

    async def handle(self, request: Request) -> Response:
        match request.path:
            case "/metrics":
                return await self._metrics(request.headers.get("accept", ""))
            case "/healthz":
                return Response(HTTPStatus.OK, TEXT, b"ok\n")  # whoever reads this: the loop turns
            case "/readyz":
                found = health(self._read())
                status = HTTPStatus.OK if found.ready else HTTPStatus.SERVICE_UNAVAILABLE
                return Response(status, JSON, msgspec.json.encode(found) + b"\n")
            case "/":
                return Response(HTTPStatus.OK, TEXT, _PAGES)
        return Response(HTTPStatus.NOT_FOUND, TEXT, b"there are /metrics, /healthz and /readyz\n")

    async def _metrics(self, accept: str) -> Response:
        began_ns = monotonic_ns()
        exposition = Exposition(self._read(), accept)
        pieces = []
        for piece in exposition.pieces():
            pieces.append(piece)
            took_ns = monotonic_ns() - began_ns
            if took_ns >= TURN_NS:
                self._held(took_ns)
                await asyncio.sleep(0)
                began_ns = monotonic_ns()
        text = b"".join(pieces)
        self._held(monotonic_ns() - began_ns)
        return Response(HTTPStatus.OK, exposition.content_type, text)

    def __repr__(self) -> str:
        return "<Pages /metrics /healthz /readyz>"
