"""Reports what a command waits for, so that it does not seem to hang."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

import click

SILENT_S = 3.0

_is_reported = ContextVar("_is_reported", default=False)  # by an outer `waiting`


@asynccontextmanager
async def waiting(purpose: str) -> AsyncIterator[None]:
    """Report on standard error what the command waits for, after SILENT_S."""
    if _is_reported.get():
        yield
        return
    import asyncio

    token = _is_reported.set(True)
    alarm = asyncio.get_running_loop().call_later(
        SILENT_S, lambda: click.echo(f"Waiting {purpose}.", err=True)
    )
    try:
        yield
    finally:
        alarm.cancel()
        _is_reported.reset(token)
