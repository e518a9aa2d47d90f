"""``kraftd start``: the daemon in the foreground, until SIGTERM or SIGINT."""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from typing import TYPE_CHECKING

import click

from kraftd.cli.cluster_options import DEFAULT_BOOTSTRAP
from kraftd.cli.code_archive import renew_archive_later
from kraftd.cli.failures import DIRECTORY, FAILED, OK, CommandFailure
from kraftd.types import address_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kraftd.config import DaemonConfig
    from kraftd.types import Endpoint

MIN_OPEN_FILES = 64  # its libraries, listeners and files; with less, the event loop aborts the process
STOPS = (signal.SIGINT, signal.SIGTERM)
QUORUM_LIVES = 4  # of `run_node` only: a new voter has found its quorum alive


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a key of the file; may be repeated.",
)
def start(file: str, overrides: tuple[str, ...]) -> int:
    """Start a node: a controller, a broker, or both.

    FILE is a .properties file for a node of Apache Kafka; process.roles in it says which.

    Format its data directory first (kraftd format). The node runs until SIGTERM or SIGINT. Then it
    answers the requests that have arrived, syncs its logs and ends with exit code 0.

    With kraftd.metrics.listener=host:port in FILE, it serves /metrics for Prometheus, /healthz and /readyz at
    that address. While it loads its log, /readyz shows the progress.
    """
    signal_stops()
    from kraftd.config import load

    return run_node(load(file, overrides))


def signal_stops() -> None:
    """End at once with 0 on SIGTERM and SIGINT, and not on SIGHUP, until the daemon listens to them.

    A SIGINT that is ignored at the start stays so, as in a JVM: a shell starts a background job that way, so
    that an interrupt of the job in the foreground does not end it.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal that is gone ends nothing
    for number in STOPS:
        if number != signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, leave)


def run_node(config: DaemonConfig, *, rejoins: bool = False) -> int:
    """Run a node until a signal stops it; return its exit code.

    With rejoins it is QUORUM_LIVES for a new voter that finds its quorum alive.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < MIN_OPEN_FILES:
        raise CommandFailure(
            f"This process may have {hard} files open, and a node needs {MIN_OPEN_FILES} at least: "
            "raise the limit (ulimit -n, LimitNOFILE).",
            FAILED,
        )
    if 0 <= soft < MIN_OPEN_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (MIN_OPEN_FILES, hard))

    gc.disable()  # what is imported and loaded stays; the daemon enables it once it serves
    from kraftd.runtime.freed_memory import give_back_freed_memory, set_options

    set_options()
    from kraftd.runtime.daemon import run

    give_back_freed_memory()

    def announce(cluster_id: str, endpoints: Sequence[Endpoint]) -> None:
        try:
            click.echo(announcement(config, cluster_id, endpoints))
        except OSError:
            # Its reader has gone. What is left in the buffer must not fail once more at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        renew_archive_later()

    code = run(config, announce, rejoins=rejoins)
    if code == QUORUM_LIVES:
        signal_stops()
        return code
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)  # it is ending: another signal changes nothing
    return code if code in (OK, DIRECTORY) else FAILED


def leave(_number: int, _frame: object) -> None:
    """End at once: a signal to stop came before any answer, so there is nothing to finish. Without a handler,
    process 1 of a container would not even get the signal.
    """
    # No SystemExit: the interrupted code may turn it into another error (a class statement) or swallow it.
    os._exit(OK)


def announcement(config: DaemonConfig, cluster_id: str, endpoints: Sequence[Endpoint]) -> str:
    """What connecting a broker needs: address, cluster id, and the two lines of its file."""
    ports = {endpoint.listener: endpoint.port for endpoint in endpoints}

    def reached(at: Endpoint) -> str:
        return host_port(at if at.port else at._replace(port=ports[at.listener]))

    for_clients = ", ".join(map(reached, config.broker_listeners))
    if not config.is_controller:
        return f"kraftd is listening on {for_clients} (broker {config.node_id}, cluster {cluster_id})."
    address = reached(config.quorum_endpoint)
    if config.is_static_quorum:
        voters = ",".join(
            f"{node}@{address_text(where)}" for node, where in sorted(config.quorum_voters.items())
        )
        line = f"controller.quorum.voters={voters}"
    else:
        servers = dict.fromkeys(
            (address, *(address_text(where) for where in config.quorum_bootstrap_servers))
        )
        line = f"controller.quorum.bootstrap.servers={','.join(servers)}"
    return "\n".join(
        (
            f"kraftd is listening on {address} (node {config.node_id}, cluster {cluster_id}).",
            *([f"Clients connect to {for_clients}.", *trials(for_clients)] if for_clients else []),
            "A broker joins with these two lines in its file:",
            f"  {line}",
            f"  controller.listener.names={config.controller_listener_names[0]}",
        )
    )


def trials(for_clients: str) -> list[str]:
    """Three commands with which a record goes round."""
    program = sys.argv[0] if os.sep in sys.argv[0] else "kraftd"
    if os.path.isabs(program):
        program = "kraftd" if _is_first_on_path(program) else os.path.relpath(program)
    first = for_clients.split(", ")[0]
    at = "" if first == DEFAULT_BOOTSTRAP else f" --bootstrap {first}"
    produce, consume = f"{program} produce hello{at}", f"{program} consume hello --from-beginning{at}"
    return [
        "Try, in another terminal:",
        f"  {produce.ljust(len(consume))}  # a record for each line that you type",
        f"  {consume}",
        f"  {program} groups list{at}",
    ]


def _is_first_on_path(program: str) -> bool:
    """Return whether a shell runs this program as ``kraftd``. shutil, which has that, is slow to load."""
    paths = (os.path.join(directory, "kraftd") for directory in os.get_exec_path())
    return (
        next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None) == program
    )


def host_port(endpoint: Endpoint) -> str:
    return address_text((endpoint.host or "localhost", endpoint.port))
