"""The sockets of the configured listeners: what an empty host means, and the remedy if one fails."""

from __future__ import annotations

import errno
import socket

from kraftd.config import DaemonConfig
from kraftd.runtime.assembly import StartupError
from kraftd.types import Endpoint

PRIVILEGED_PORTS = 1024


def bind(config: DaemonConfig) -> list[tuple[socket.socket, Endpoint]]:
    """A bound socket for each listener, with its port. Raises StartupError."""
    bound: list[tuple[socket.socket, Endpoint]] = []
    try:
        for endpoint in config.listeners:
            sock = _bind("listeners", endpoint, repr(endpoint), config.socket_listen_backlog_size)
            bound.append((sock, endpoint._replace(port=sock.getsockname()[1])))
    except BaseException:
        for sock, _ in bound:
            sock.close()
        raise
    return bound


def bind_metrics(config: DaemonConfig) -> socket.socket | None:
    """The socket of the metrics listener, if one is configured. Raises StartupError."""
    endpoint = config.metrics_listener
    if endpoint is None:
        return None
    import kraftd.runtime.reporting.metrics_listener  # noqa: F401  # slow to load, so loaded before the first request is served

    text = f"{endpoint.host}:{endpoint.port}"
    return _bind("kraftd.metrics.listener", endpoint, text, config.socket_listen_backlog_size)


def _bind(key: str, endpoint: Endpoint, text: str, backlog: int) -> socket.socket:
    """A socket that listens there; the text is the endpoint as in the key. Raises StartupError."""
    try:
        return listening_socket(endpoint.host, endpoint.port, backlog)
    except OSError as error:
        what = remedy(error, key, endpoint.host, endpoint.port)
        raise StartupError(f"{key}={text}: cannot listen there: {error.strerror}. {what}") from error


def listening_socket(host: str, port: int, backlog: int) -> socket.socket:
    """A socket that listens at an address. Raises OSError.

    An empty host means every address of this machine, of IPv6 and IPv4, as in Kafka; without IPv6 those of
    IPv4 alone.
    """
    if host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return _listening(family, host, port, backlog)
    try:
        return _listening(socket.AF_INET6, "::", port, backlog)
    except OSError as error:
        if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
            raise
    return _listening(socket.AF_INET, "0.0.0.0", port, backlog)


def _listening(family: int, host: str, port: int, backlog: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # "::" alone includes IPv4; a given IPv6 address means only itself.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
        sock.bind((host, port))
        # Two processes may bind with SO_REUSEADDR; only one may listen.
        sock.listen(backlog)
    except BaseException:
        sock.close()
        raise
    return sock


def remedy(error: OSError, key: str, host: str, port: int) -> str:
    """The advice for a socket that cannot listen."""
    if isinstance(error, socket.gaierror):
        return f"No address is known for {host}; correct the host in {key}"
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f"This machine has no address {host}; correct the host in {key}, or leave it out to listen on all"
        )
    if error.errno in (errno.EACCES, errno.EPERM) and port < PRIVILEGED_PORTS:
        return (
            f"Ports below {PRIVILEGED_PORTS} need the capability CAP_NET_BIND_SERVICE; give it to this "
            f"process, or choose another port in {key}"
        )
    if error.errno == errno.EADDRINUSE:
        return f"Stop what uses the address, or choose another in {key}"
    if error.errno == errno.EAFNOSUPPORT:
        return f"This machine has no addresses of that family; give one of another in {key}"
    if error.errno == errno.EINVAL and host.lower().startswith("fe80:"):
        return f"A link-local address needs its interface, as in [{host}%eth0]; correct the host in {key}"
    return f"Correct the address in {key}"
