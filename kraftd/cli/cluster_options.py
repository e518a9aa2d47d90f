"""The options by which commands find a cluster, and the source that they select."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kraftd.cli.values import SECONDS
from kraftd.cli.wait_notice import waiting

if TYPE_CHECKING:
    from kraftd.cli.sources.source import Source

    Cluster = AbstractAsyncContextManager[Source]

Result = TypeVar("Result")

BOOTSTRAP_NAMES = ("--bootstrap", "--bootstrap-server", "--bootstrap-controller")
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"


class Place(click.ParamType[str]):
    """A path that is checked only when the command runs."""

    name = "PATH"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)


def _secure(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Secure the connections of this command, and of no later one, as a client's file says."""
    if path is None:
        return
    from kraftd.client.connection import default_setup
    from kraftd.client.secured import load_client_security, secured
    from kraftd.config.errors import ConfigError

    try:
        token = default_setup.set(secured(load_client_security(path)))
    except ConfigError as error:
        raise click.BadParameter(str(error), context, param_hint="--command-config") from None
    context.call_on_close(lambda: default_setup.reset(token))


command_config_option = click.option(
    "--command-config",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_secure,
    expose_value=False,
    help="A client's .properties file (security.protocol, ssl.*, sasl.*), as for Kafka's tools.",
)


answer_timeout_option = click.option(
    "--timeout",
    "timeout_s",
    type=SECONDS,
    default=15.0,
    show_default=True,
    help="Seconds to wait for an answer of the cluster.",
)


def bootstrap_option(help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option that names nodes of a running cluster, with the default that all commands have."""
    return click.option(
        *BOOTSTRAP_NAMES,
        "bootstrap",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        metavar="HOST:PORT,...",
        help=help,
    )


class ClusterGroup(click.Group):
    """Commands of a cluster. The options that name it may precede the command, as with Kafka's tools:
    ``quorum --bootstrap-controller HOST:PORT describe``.
    """

    NAMING = (*BOOTSTRAP_NAMES, "--command-config")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = 0
        while end < len(args) and args[end].partition("=")[0] in self.NAMING:
            end += 1 if "=" in args[end] else 2
        if 0 < end < len(args):
            args = [args[end], *args[:end], *args[end + 1 :]]
        return super().parse_args(ctx, args)


def of_cluster(command: Callable[..., Coroutine[Any, Any, int]]) -> Callable[..., int]:
    """Add the options that name a cluster, and run the command with that cluster's source: --directory, or
    --bootstrap with its default.

    The command is a coroutine function; its first argument is what `opened_source` returns.
    """

    @wraps(command)
    def started(bootstrap: str | None, path: str | None, timeout_s: float, **options: Any) -> int:
        return run(command(opened_source(bootstrap, path, timeout_s), **options))

    for option in (
        command_config_option,
        answer_timeout_option,
        click.option(
            "-d",
            "--directory",
            "--file",
            "path",
            type=Place(),
            help="A data directory, its __cluster_metadata-0, or a copied file of it. No lock is taken.",
        ),
        click.option(
            *BOOTSTRAP_NAMES,
            "bootstrap",
            metavar="HOST:PORT,...",
            help="Controllers or brokers of a running cluster, kraftd's or Apache Kafka's. Default without "
            f"--directory: {DEFAULT_BOOTSTRAP}.",
        ),
    ):
        started = option(started)
    return started


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line, for scripts."
)

secrets_option = click.option(
    "--show-secrets", is_flag=True, help="Show passwords, salted keys and values of unknown configs as well."
)


@asynccontextmanager
async def opened_source(bootstrap: str | None, path: str | None, timeout_s: float) -> AsyncIterator[Source]:
    """The source that the options name, closed afterwards. Raises UsageError, CommandFailure."""
    if bootstrap is not None and path is not None:
        raise click.UsageError("Give either --bootstrap HOST:PORT or --directory PATH.")
    source: Source
    if path is not None:
        from kraftd.cli.sources.files import FileSource

        source = FileSource(path)
    else:
        from kraftd.cli.sources.quorum import find_quorum

        bootstrap = DEFAULT_BOOTSTRAP if bootstrap is None else bootstrap
        async with waiting(f"for an answer, {timeout_s:g} s at most"):
            source = await find_quorum(bootstrap, timeout_s)
    try:
        yield source
        if note := await source.note():
            click.echo(note, err=True)
    finally:
        await source.close()


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's coroutine to its end."""
    import asyncio

    return asyncio.run(main)
