"""The options by which commands find the brokers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from kraftd.cli.cluster_options import answer_timeout_option, bootstrap_option, command_config_option, run
from kraftd.cli.failures import FAILED, OK

if TYPE_CHECKING:
    from kraftd.client.cluster import Cluster

MOST_NOTICES = 5  # of partitions that have no leader there may be very many


def show_missing(missing: Mapping[str, str], what: str) -> int:
    """Say whose part is not in a list, such as that of a broker, and why; returns the exit code."""
    for whose, why in missing.items():
        click.echo(f"The {what} of {whose} are missing: {why}.", err=True)
    return FAILED if missing else OK


class Notices:
    """Says on standard error what a command waits for, so that it does not seem to hang: each thing once."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._told: set[str] = set()

    def tell(self, failure: Exception) -> None:
        """Say it, unless that or much else was said before."""
        text = str(failure)
        if text not in self._told and len(self._told) < MOST_NOTICES:
            self._told.add(text)
            click.echo(f"Waiting, {self._timeout_s:g} s at most: {text}.", err=True)

    def __repr__(self) -> str:
        return f"<Notices, {len(self._told)} told>"


def of_brokers(command: Callable[..., Coroutine[Any, Any, int]]) -> Callable[..., int]:
    """Add the options that name a cluster's brokers.

    The command is a coroutine function; its first argument is an open client of the cluster.
    """

    @wraps(command)
    def started(bootstrap: str, timeout_s: float, **options: Any) -> int:
        async def main() -> int:
            from kraftd.cli.quorum.leader import parse_addresses
            from kraftd.client.cluster import Cluster

            cluster: Cluster
            async with Cluster(parse_addresses(bootstrap), timeout_s) as cluster:
                cluster.tell = Notices(timeout_s).tell
                return await command(cluster, **options)

        return run(main())

    add_bootstrap = bootstrap_option("Brokers of the cluster, kraftd's or Apache Kafka's.")
    return command_config_option(answer_timeout_option(add_bootstrap(started)))
