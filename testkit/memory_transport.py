"""The twin in memory of a loop's transport (kraftd.net.transport)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class MemoryTransport:
    """A transport without a socket: what was written is kept, and nothing is sent on a closed one."""

    def __init__(self, peer: tuple[str, int] = ("127.0.0.1", 50000)) -> None:
        self.peer = peer
        self.written = bytearray()
        self.writes = 0
        self.reading = True
        self.closed = False

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        if not self.closed:
            self.written += b"".join(list_of_data)
            self.writes += 1

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.peer if name == "peername" else default

    def take(self) -> bytes:
        """Remove and return everything written since the last call."""
        taken = bytes(self.written)
        self.written.clear()
        return taken

    def __repr__(self) -> str:
        state = "closed" if self.closed else "reading" if self.reading else "paused"
        return f"<MemoryTransport {self.peer[0]}:{self.peer[1]} {state}, {len(self.written)} bytes written>"
