"""A connection's interface of the loop's transport.

The methods are those of `asyncio.Transport`, so that uvloop's transports fit as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol


class Transport(Protocol):
    """One byte stream to a peer. Writes are buffered; the loop calls `pause_writing` when too much is."""

    def writelines(self, list_of_data: Iterable[Any]) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def close(self) -> None: ...
    def is_closing(self) -> bool: ...
    def get_extra_info(self, name: str, default: Any = None) -> Any: ...
