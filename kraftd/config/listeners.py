"""Listeners: the endpoints that ``listeners``, ``advertised.listeners`` and the protocol map define together
(AbstractKafkaConfig).

Every function raises ValueError with the fault and the remedy; the caller adds the key and its place.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence

from kraftd.config.unknown import probably_meant
from kraftd.types import Endpoint

_LISTENER = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)]?:(-?[0-9]+)")
METRICS_LISTENER = "METRICS"  # its name, whose TLS keys begin with listener.name.metrics.
_METRICS_LISTENER = re.compile(r"(https?://)?(?:\[([0-9a-fA-F:.%]+)]|([0-9a-zA-Z\-._]*)):([0-9]{1,6})/?")
PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
WILDCARD = "0.0.0.0"
LOOPBACK = "127.0.0.1"


def parse_protocol_map(text: str) -> dict[str, str]:
    """Listener name -> security protocol, of ``NAME:PROTOCOL,NAME:PROTOCOL``."""
    protocols = {}
    for item in filter(None, re.split(r"\s*,\s*", text.strip())):
        name, colon, protocol = item.rpartition(":")
        if not colon:
            raise ValueError(f"{item!r} must be NAME:PROTOCOL, like CONTROLLER:PLAINTEXT")
        protocol = protocol.strip().upper()
        if protocol not in PROTOCOLS:
            raise ValueError(f"{protocol!r} is no security protocol; there are {', '.join(PROTOCOLS)}")
        protocols[name.strip().upper()] = protocol
    return protocols


def with_default_protocols(
    protocols: Mapping[str, str], listeners: Sequence[str], controller_names: Sequence[str]
) -> dict[str, str]:
    """The map when it is not set: controller listeners are PLAINTEXT, unless a secured protocol is in use."""
    names = [*controller_names, *(listener.partition(":")[0].upper() for listener in listeners)]
    if any(name in ("SSL", "SASL_SSL", "SASL_PLAINTEXT") for name in names):
        return dict(protocols)
    return {**protocols, **{name.upper(): "PLAINTEXT" for name in controller_names}}


def parse_listeners(
    listeners: Sequence[str], protocols: Mapping[str, str], *, distinct_ports: bool = True
) -> tuple[Endpoint, ...]:
    """The endpoints of a list like ``CONTROLLER://:9093``; host "" is every interface."""
    endpoints = tuple(parse_listener(text, protocols) for text in listeners)
    if len({endpoint.listener for endpoint in endpoints}) < len(endpoints):
        raise ValueError("each listener must have a name of its own")
    if distinct_ports:
        for port in {endpoint.port for endpoint in endpoints if endpoint.port}:
            check_shared_port(port, [endpoint.host for endpoint in endpoints if endpoint.port == port])
    return endpoints


def parse_listener(text: str, protocols: Mapping[str, str]) -> Endpoint:
    match = _LISTENER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} must be NAME://host:port, like CONTROLLER://:9093")
    name, host, port = match[1].upper(), match[2], int(match[3])
    if not 0 <= port <= 65535:
        raise ValueError(f"{port} is no port; ports are from 0 to 65535")
    if name not in protocols:
        meant = probably_meant(name, protocols)
        hint = f"did you mean {meant}?" if meant else "name it there or in controller.listener.names"
        raise ValueError(f"no listener named {name} in listener.security.protocol.map; {hint}")
    return Endpoint(name, host, port, PROTOCOLS[protocols[name]])


def parse_metrics_listener(text: str) -> Endpoint | None:
    """`kraftd.metrics.listener`: host:port, http:// or https:// before it or not; None for an empty text."""
    if not text.strip():
        return None
    match = _METRICS_LISTENER.fullmatch(text.strip())
    if match is None:
        raise ValueError("must be host:port, like 127.0.0.1:9404, or :9404 for every interface")
    host, port = match[2] or match[3] or "", int(match[4])
    if port > 65535:
        raise ValueError(f"{port} is no port; ports are from 0 to 65535")
    protocol = "SSL" if match[1] == "https://" else "PLAINTEXT"
    return Endpoint(METRICS_LISTENER, host, port, PROTOCOLS[protocol])


def parse_metrics_nodes(texts: Sequence[str]) -> dict[int, str]:
    """`kraftd.metrics.nodes`: the URL of each node's page, of ID@host:port, with https:// or not."""
    found = {}
    for text in texts:
        node_id, _, address = text.partition("@")
        match = _METRICS_LISTENER.fullmatch(address)
        if match is None or not node_id.isascii() or not node_id.isdecimal():
            raise ValueError(f"{text} must be ID@host:port, like 2@c2:9404 or 2@https://c2:9404")
        found[int(node_id)] = f"{match[1] or 'http://'}{address.removeprefix(match[1] or '')}/"
    return found


def parse_ip_overrides(text: str) -> dict[str, int]:
    """``max.connections.per.ip.overrides``: connections at once by host, of ``host:number,host:number``."""
    overrides = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = item.rpartition(":")
        if not host or not (count.strip().isascii() and count.strip().isdecimal()):
            raise ValueError(f"{item} must be host:number")
        overrides[host.strip()] = int(count)
    return overrides


def check_shared_port(port: int, hosts: Sequence[str]) -> None:
    """Two listeners may share a port when one is an IPv4 address and the other an IPv6 address, and only
    then.
    """
    if len(hosts) > 1 and sorted(map(address_family, hosts)) != [4, 6]:
        raise ValueError(
            f"several listeners have port {port}; give each its own, or one an IPv4 and one an IPv6 address"
        )


def are_apart(listening: str, called: str) -> bool:
    """Return whether a socket that listens at one host surely gets no connections for another. False for
    names, which only a resolver knows, except that `localhost` is always this machine.
    """
    try:
        ours, theirs = (
            ipaddress.ip_address(LOOPBACK if host.lower() == "localhost" else host.partition("%")[0])
            for host in (listening, called)
        )
    except ValueError:
        return False
    if "localhost" in (listening.lower(), called.lower()):  # either family
        return not (ours.is_loopback and theirs.is_loopback) and not ours.is_unspecified
    return ours != theirs and not ours.is_unspecified


def address_family(host: str) -> int:
    """4 or 6, 0 for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).version
    except ValueError:
        return 0


def advertise(
    controller_names: Sequence[str],
    listeners: Sequence[Endpoint],
    advertised: Sequence[Endpoint],
    voter_address: tuple[str, int] | None,
) -> tuple[Endpoint, ...]:
    """The advertised endpoint of each controller listener, in the order of ``controller.listener.names``.

    The advertised one, else that in `listeners`. If the first listens on every interface, its address is the
    one that ``controller.quorum.voters`` has for this node. Host "" stays if no key names one.
    """
    announced = []
    for position, name in enumerate(controller_names):
        published = next((endpoint for endpoint in advertised if endpoint.listener == name.upper()), None)
        own = next((endpoint for endpoint in listeners if endpoint.listener == name.upper()), None)
        if published is None and own is not None:
            everywhere = own.host in ("", WILDCARD)
            if everywhere and position == 0 and voter_address is not None:
                published = own._replace(host=voter_address[0], port=voter_address[1])
            else:
                published = own._replace(host="") if everywhere else own
        if published is not None:
            announced.append(published)
    return tuple(announced)
