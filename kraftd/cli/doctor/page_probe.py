"""Asks this machine's node, at its metrics listener, for logs that its broker cannot use or clean, and for
what keeps it behind other brokers.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from base64 import b64encode
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import convert

from kraftd.cli.doctor.findings import Finding, Level, note, ok, problem, replace_log, warning
from kraftd.cli.doctor.judge_cluster import partitions_text
from kraftd.cli.doctor.judge_disk import size_text
from kraftd.cli.doctor.judge_replicas import REPAIR_DISK
from kraftd.metrics.state.health import STOPPING
from kraftd.metrics.state.slow_fetches import SlowFetches, described
from kraftd.types import address_text

if TYPE_CHECKING:
    from kraftd.config import DaemonConfig

MAX_ANSWER_BYTES = 1 << 20
MAX_EXAMPLES = 3  # of partitions that a full disk keeps closed
REMEDY = "restore its files from another replica and restart the broker; until then the log is not cleaned"
REPLACE = replace_log("the broker")
ROOM = "make room on that disk{}, or enlarge it; the broker needs no restart"
MAKE_ROOM = ROOM.format("")
NAME_LISTENER = "name the kraftd.metrics.listener of a node, one without TLS and password"
MORE_BROKERS = (
    "start more brokers, or lower its replication factor in the brokers' files and restart them "
    "(offsets.topic, transaction.state.log or share.coordinator.state.topic.replication.factor)"
)
SLOW = "mend what is slow; until it has caught up, its partitions lack a replica"


async def probe_page(config: DaemonConfig, timeout_s: float) -> list[Finding]:
    """A finding for each log. None without such a listener, or an answer."""
    page = config.metrics_listener
    if page is None:
        return []
    host = page.host if page.host not in ("", "0.0.0.0", "::") else "localhost"
    health = await _health(config, host, page.port, timeout_s)
    return [] if health is None else judge_health(address_text((host, page.port)), health)


async def probe_pages(addresses: Iterable[tuple[str, int]], timeout_s: float) -> list[Finding]:
    """The same of other nodes, by their metrics listeners; only those without TLS and password answer."""
    addresses = list(addresses)
    answers = await asyncio.gather(*(_health(None, *one, timeout_s) for one in addresses))
    found = []
    for address, health in zip(addresses, answers, strict=True):
        at = address_text(address)
        if not isinstance(health, dict) or "node_id" not in health:
            found.append(warning("metrics", at, "no kraftd node answers /readyz there", NAME_LISTENER))
            continue
        node = f"node {health['node_id']}"
        own = judge_health(at, health)
        found += [
            one if one.subject == node else one._replace(subject=f"{node} {one.subject}") for one in own
        ]
        if not own:
            found.append(ok("metrics", at, f"{node} names nothing that is full, damaged or slow there"))
    return found


async def _health(config: DaemonConfig | None, host: str, port: int, timeout_s: float) -> Any:
    """The data of /readyz; None without an answer."""
    try:
        async with asyncio.timeout(timeout_s):
            return json.loads(await _ask(config, host, port))
    except (OSError, TimeoutError, ValueError):
        return None


def judge_health(where: str, health: Any) -> list[Finding]:
    """The findings about the data of /readyz."""
    broker = health.get("broker") if isinstance(health, dict) else None
    if not isinstance(broker, dict):
        return []
    named: dict[str, str] = broker.get("uncleanable") or {}
    unusable: dict[str, str] = broker.get("unusable") or {}
    node = f"node {health.get('node_id')}"
    full: dict[str, float] = broker.get("full_directories") or {}
    offline: dict[str, str] = broker.get("offline_directories") or {}
    rooms = broker.get("full_rooms") or {}
    found = [_full_disk(path, age_s, rooms.get(path) or {}, unusable) for path, age_s in full.items()]
    unusable = {name: reason for name, reason in unusable.items() if not _names(reason, full)}
    found += [
        problem("disk", path, f"this broker has taken it offline: {reason}", REPAIR_DISK)
        for path, reason in offline.items()
    ]
    if health.get("state") == STOPPING:
        led = partitions_text(int(broker.get("led_partitions") or 0))
        found.append(note("brokers", node, f"it is stopping, and still leads {led}"))
    found += [
        problem("replicas", name, f"this broker cannot use its log: {reason}", _remedy(reason, offline))
        for name, reason in unusable.items()
    ]
    found += [
        warning("cleaner", name, f"its log cannot be cleaned: {reason}", REMEDY)
        for name, reason in named.items()
    ]
    found += [
        warning("replicas", node, f"it is behind: {described(one)}", SLOW)
        for one in convert(broker.get("slow_fetches") or [], list[SlowFetches])
    ]
    found += [
        problem("topics", name, reason, MORE_BROKERS)
        for name, reason in (broker.get("uncreated") or {}).items()
    ]
    more = int(broker.get("uncleanable_logs") or 0) - len(named)
    if more > 0:
        found.append(warning("cleaner", where, f"{more} more logs cannot be cleaned", REMEDY))
    return found


def _full_disk(path: str, age_s: float, room: dict[str, int | None], unusable: dict[str, str]) -> Finding:
    """One problem for all that a full disk leads to."""
    free_bytes, needed_bytes = room.get("free_bytes"), room.get("needed_bytes")
    free = "no room" if free_bytes is None else f"{size_text(free_bytes)} free"
    text = f"{free}: this broker refuses records there, {age_s:.0f} s ago last"
    if names := [name for name, reason in unusable.items() if _names(reason, (path,))]:
        more = f" and {len(names) - MAX_EXAMPLES} more" if len(names) > MAX_EXAMPLES else ""
        text += f"; it cannot use its logs of {', '.join(names[:MAX_EXAMPLES])}{more}"
    if not needed_bytes:
        return problem("disk", path, text, MAKE_ROOM)
    needed = f"about {size_text(needed_bytes)}"
    return problem("disk", path, f"{text}; opening them needs {needed}", ROOM.format(f", {needed} at least"))


def _names(reason: str, paths: Iterable[str]) -> bool:
    """Return whether the reason why a log cannot be used names one of these log directories, or a file there.

    A directory whose name another's begins with is not named by that one.
    """
    return any(re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w-]|\.\w)", reason) for path in paths)


def join_full_disks(found: list[Finding], of_page: list[Finding]) -> list[Finding]:
    """The findings, and those of the page of the same node; one for a disk that both call full."""
    disks = {one.subject: one for one in of_page if one.area == "disk"}
    joined = []
    for one in found:
        other = disks.pop(one.subject, None) if one.area == "disk" and one.level is Level.PROBLEM else None
        joined.append(one if other is None else other._replace(text=f"{one.text}; {other.text}"))
    return joined + [one for one in of_page if one.area != "disk" or one.subject in disks]


def _remedy(reason: str, offline: Iterable[str]) -> str:
    """What to do about a log that a broker cannot use, by the log directory that the reason names."""
    return REPAIR_DISK if _names(reason, offline) else REPLACE


async def _ask(config: DaemonConfig | None, host: str, port: int) -> bytes:
    """The answer's body. With TLS, only of a node that has the certificate of the file: it gets the password.

    Raises ValueError for another certificate.
    """
    tls = None if config is None else _own_tls(config)
    reader, writer = await asyncio.open_connection(host, port, ssl=None if tls is None else tls[0])
    try:
        if tls is not None and writer.get_extra_info("ssl_object").getpeercert(binary_form=True) != tls[1]:
            raise ValueError("another node")
        writer.write(_request(config))
        answer = bytearray()
        while len(answer) < MAX_ANSWER_BYTES and (part := await reader.read(MAX_ANSWER_BYTES)):
            answer += part
    finally:
        writer.close()
    return bytes(answer).partition(b"\r\n\r\n")[2]


def _own_tls(config: DaemonConfig) -> tuple[ssl.SSLContext, bytes] | None:
    """The context of a client with the listener's own certificate, and that certificate; None without TLS.

    The certificate need not name this host: it is compared instead. Raises ValueError for unusable stores.
    """
    from kraftd.config.listeners import METRICS_LISTENER

    listener = config.security.listeners.get(METRICS_LISTENER)
    if listener is None or listener.tls is None:
        return None
    from kraftd.net.tls.contexts import TlsContexts

    contexts = TlsContexts(listener.tls)
    if contexts.identity is None:
        raise ValueError("a listener without a certificate")
    context = contexts.client
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    first, end, _ = contexts.identity.chain.decode().partition("-----END CERTIFICATE-----")
    return context, ssl.PEM_cert_to_DER_cert(first + end)


def _request(config: DaemonConfig | None) -> bytes:
    head = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    if config is not None and config.metrics_password:
        credentials = b64encode(f"{config.metrics_user}:{config.metrics_password}".encode()).decode()
        head += f"Authorization: Basic {credentials}\r\n"
    return f"{head}\r\n".encode()
