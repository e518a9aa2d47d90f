"""Asks this machine's node, at its metrics listener, for logs that its broker cannot clean."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from kraftd.cli.doctor.findings import Finding, warning
from kraftd.types import address_text

if TYPE_CHECKING:
    from kraftd.config import DaemonConfig

MAX_ANSWER_BYTES = 1 << 20
REMEDY = "restore its files from another replica and restart the broker; until then the log is not cleaned"
_REQUEST = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def probe_page(config: DaemonConfig, timeout_s: float) -> list[Finding]:
    """A finding for each log. None without such a listener, with TLS or a password at it, or no answer."""
    page = config.metrics_listener
    if page is None or page.security_protocol or config.metrics_password:
        return []
    host = page.host if page.host not in ("", "0.0.0.0", "::") else "localhost"
    try:
        async with asyncio.timeout(timeout_s):
            answer = await _ask(host, page.port)
        health = json.loads(answer)
    except (OSError, TimeoutError, ValueError):
        return []
    return judge_health(address_text((host, page.port)), health)


def judge_health(where: str, health: Any) -> list[Finding]:
    """The findings about the data of /readyz."""
    broker = health.get("broker") if isinstance(health, dict) else None
    if not isinstance(broker, dict):
        return []
    named: dict[str, str] = broker.get("uncleanable") or {}
    found = [
        warning("cleaner", name, f"its log cannot be cleaned: {reason}", REMEDY)
        for name, reason in named.items()
    ]
    more = int(broker.get("uncleanable_logs") or 0) - len(named)
    if more > 0:
        found.append(warning("cleaner", where, f"{more} more logs cannot be cleaned", REMEDY))
    return found


async def _ask(host: str, port: int) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(_REQUEST)
        answer = bytearray()
        while len(answer) < MAX_ANSWER_BYTES and (part := await reader.read(MAX_ANSWER_BYTES)):
            answer += part
    finally:
        writer.close()
    return bytes(answer).partition(b"\r\n\r\n")[2]
