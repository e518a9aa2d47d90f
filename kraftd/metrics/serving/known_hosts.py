"""The names by which pages are served: a page of another site must not read them in a browser.

A site can let its own name lead to this address (DNS rebinding). Its page then reads this listener like the
site itself, but the Host header of its requests names the site.
"""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from ipaddress import ip_address

from kraftd.metrics.serving.http import TEXT, Handler, Request, Response, Stream

PROBES = ("/healthz", "/readyz")  # answered by any name: an orchestrator's probe may use any
LOCAL = "localhost"


def with_known_hosts(handle: Handler, names: Collection[str]) -> Handler:
    """A handler that passes on requests to these host names, to addresses, and to localhost.

    It refuses all others with status 421, except for probes. A request without a Host header is none of a
    browser's.
    """
    known = {name.lower().rstrip(".") for name in names} | {LOCAL}

    async def guarded(request: Request) -> Response | Stream:
        name = host_name(request.headers.get("host", ""))
        if request.path in PROBES or not name or name in known or is_address(name):
            return await handle(request)
        text = f"this node is not known as {name!a}; kraftd.metrics.hosts may name it\n"
        return Response(HTTPStatus.MISDIRECTED_REQUEST, TEXT, text.encode())

    return guarded


def host_name(header: str) -> str:
    """The name in a Host header, without its port, in lower case; an IPv6 address without brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower().rstrip(".")


def is_address(name: str) -> bool:
    """Return whether a host is an IP address, which no other site can be."""
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True
