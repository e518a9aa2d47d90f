"""A POST to the token endpoint of an identity provider; blocks, so it runs in no event loop's thread.

No redirect is followed: credentials go nowhere but to the configured address.
"""

from __future__ import annotations

import time
from typing import Any

from kraftd.net.tls.source import TlsSource
from kraftd.security.sasl.client_credentials import MAX_ANSWER_BYTES, GrantRefused, TokenGrant, request

READ_BYTES = 65_536


def post(grant: TokenGrant, tls: TlsSource | None) -> tuple[int, bytes]:
    """The status and the body of the answer, of which at most one byte over the limit is read.

    Waits for each step no longer than the grant's timeouts. Raises GrantRefused.
    """
    # Every start would import them, which few nodes need.
    import http.client
    import urllib.error
    import urllib.request

    read_s = grant.read_timeout_ms / 1000

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None

    class Http(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(_two_timeouts(http.client.HTTPConnection, read_s), request)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> Any:
            context = tls.client if tls is not None else None
            return self.do_open(_two_timeouts(http.client.HTTPSConnection, read_s), request, context=context)

    headers, body = request(grant)
    http_request = urllib.request.Request(grant.url, body, headers, method="POST")
    opener = urllib.request.build_opener(NoRedirect, Http, Https)
    try:
        try:
            with opener.open(http_request, timeout=grant.connect_timeout_ms / 1000) as answer:
                return answer.status, read_answer_bytes(answer, read_s)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, read_answer_bytes(error.fp, read_s)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        why = getattr(reason, "verify_message", None) or getattr(reason, "strerror", None) or str(reason)
        raise GrantRefused(f"it does not answer: {why or type(reason).__name__}") from None


def _two_timeouts(kind: Any, read_s: float) -> Any:
    """Make connections whose own timeout holds until they are open, and `read_s` from then on."""

    def make(*arguments: Any, **options: Any) -> Any:
        made = kind(*arguments, **options)
        connect = made.connect

        def connect_then_read() -> None:
            connect()
            made.sock.settimeout(read_s)

        made.connect = connect_then_read
        return made

    return make


def read_answer_bytes(answer: Any, limit_s: float) -> bytes:
    """The body, up to one byte over the limit; an answer that arrives slowly gets the time of one read in
    all.
    """
    end_s = time.monotonic() + limit_s
    data = bytearray()
    while len(data) <= MAX_ANSWER_BYTES and (piece := answer.read1(READ_BYTES)):
        data += piece
        if time.monotonic() > end_s:
            raise TimeoutError("timed out")
    return bytes(data[: MAX_ANSWER_BYTES + 1])
