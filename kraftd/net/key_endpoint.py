"""A GET of the keys that verify tokens (JWKS); blocks, so it runs in no event loop's thread.

Redirects are followed within the configured scheme, host and port only: another host could supply keys of its
own. The whole exchange has a time limit, however slowly its bytes arrive.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from kraftd.net.tls.source import TlsSource

MAX_ANSWER_BYTES = 1 << 20


class RedirectRefused(OSError):
    """The endpoint redirects to a place that is not followed."""


def get(url: str, tls: TlsSource | None, limit_s: float) -> bytes:
    """The body of the answer, of which at most MAX_ANSWER_BYTES are read. Raises OSError."""
    import http.client  # slow to load, and needed for fetched keys only
    import urllib.request

    sockets: list[socket.socket] = []
    out_of_time = threading.Event()

    def connect(kind: Any) -> Any:
        def make(*arguments: Any, **options: Any) -> Any:
            made = kind(*arguments, **options)
            plain_connect = made.connect

            def connect_noted() -> None:
                plain_connect()
                sockets.append(made.sock)
                if out_of_time.is_set():
                    raise TimeoutError("timed out")

            made.connect = connect_noted
            return made

        return make

    class SameOrigin(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, request: Any, answer: Any, code: int, *rest: Any) -> Any:
            target = rest[-1]
            if origin(target) != origin(url):
                raise RedirectRefused(f"status {code}, a redirect to {target}, which is not followed")
            return super().redirect_request(request, answer, code, *rest)

    class Http(urllib.request.HTTPHandler):
        def http_open(self, request: urllib.request.Request) -> Any:
            return self.do_open(connect(http.client.HTTPConnection), request)

    class Https(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> Any:
            context = tls.client if tls is not None else None
            return self.do_open(connect(http.client.HTTPSConnection), request, context=context)

    def end() -> None:
        out_of_time.set()
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(limit_s, end)
    timer.daemon = True
    timer.start()
    try:
        with urllib.request.build_opener(SameOrigin, Http, Https).open(url, timeout=limit_s) as answer:
            data: bytes = answer.read(MAX_ANSWER_BYTES)
    except (OSError, http.client.HTTPException) as error:
        if out_of_time.is_set():
            raise TimeoutError(f"no whole answer within {limit_s:g} s") from None
        if isinstance(error, OSError):
            raise
        raise OSError(str(error) or type(error).__name__) from None
    finally:
        timer.cancel()
    if out_of_time.is_set():
        raise TimeoutError(f"no whole answer within {limit_s:g} s")
    return data


def origin(url: str) -> tuple[str, str | None, int | None]:
    """The scheme, the host and the port of a URL."""
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, parts.hostname, port
