"""The user and password of the metrics listener, by HTTP's Basic authentication (RFC 7617)."""

from __future__ import annotations

import asyncio
import hmac
from base64 import b64encode
from collections.abc import Callable
from http import HTTPStatus

from kraftd.metrics.serving.http import TEXT, Handler, Request, Response, Stream

_CHALLENGE = (("WWW-Authenticate", 'Basic realm="kraftd", charset="UTF-8"'),)


def with_password(
    handle: Handler, user: str, password: str, delay_s: float, refused: Callable[[], None]
) -> Handler:
    """A handler that passes on requests with these credentials, and refuses all others after a delay.

    `refused` is called for wrong credentials, not for a request without any.
    """
    wanted = b"Basic " + b64encode(f"{user}:{password}".encode())

    async def guarded(request: Request) -> Response | Stream:
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        if hmac.compare_digest(f"{scheme.capitalize()} {credentials.strip()}".encode(), wanted):
            return await handle(request)
        if credentials:
            refused()
            await asyncio.sleep(delay_s)
        return Response(HTTPStatus.UNAUTHORIZED, TEXT, b"a user and a password are needed\n", _CHALLENGE)

    return guarded
