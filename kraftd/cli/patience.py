"""Saying what a command waits for, before it is taken for hung."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

import click

SILENT_S = 3.0

_is_said = ContextVar("_is_said", default=False)  # an outer one says what is waited for


@asynccontextmanager
async def waiting(what: str) -> AsyncIterator[None]:
    """Say on standard error what is waited for, once that has taken SILENT_S."""
    if _is_said.get():
        yield
        return
    import asyncio

    token = _is_said.set(True)
    alarm = asyncio.get_running_loop().call_later(SILENT_S, lambda: click.echo(f"Waiting {what}.", err=True))
    try:
        yield
    finally:
        alarm.cancel()
        _is_said.reset(token)
