"""``kraftd container``: what the image runs; a file and the environment become a formatted, started node.

Variables name keys as they do in Apache Kafka's own image: `KAFKA_NODE_ID` is node.id; `__` stands for `_`,
`___` for `-`. `KRAFTD_METRICS_LISTENER` is kraftd.metrics.listener. `format` and `start` do the work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from kraftd.cli.failures import DIRECTORY, FAILED, OK, USAGE, CommandFailure
from kraftd.runtime.file_modes import UMASK_VARIABLE

if TYPE_CHECKING:
    from kraftd.config import DaemonConfig
    from kraftd.types import Endpoint

# The files of the image, by KAFKA_PROCESS_ROLES.
FILES = "/etc/kraftd"
FILE_OF_ROLES = {
    frozenset({"controller"}): "controller.properties",
    frozenset({"broker"}): "broker.properties",
}
WHOLE_KAFKA = "server.properties"  # of both roles, and where none is set
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Of the image itself; the rest of KRAFTD_* are keys.
OWN = (
    "KRAFTD_CONFIG",
    "KRAFTD_FORMAT",
    "KRAFTD_INITIAL_CONTROLLERS",
    "KRAFTD_BOOTSTRAP",
    "KRAFTD_CODEC",
    UMASK_VARIABLE,
)
# Of Apache Kafka's image, for its JVM and its scripts.
JVM = ("KAFKA_HEAP_OPTS", "KAFKA_OPTS", "KAFKA_GC_LOG_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_DEBUG")
JVM_PREFIXES = ("KAFKA_LOG4J_", "KAFKA_JMX_", "KAFKA_DEBUG_")
WAYS = ("standalone", "join", "initial-controllers", "static")
CHECK_TIMEOUT_S = 4.0
PROBE_S = 2.0  # for another controller to answer


@click.command("container")
@click.option(
    "--check", is_flag=True, help="Exit with 0 if the node of this container answers, for a health check."
)
def container(check: bool) -> int:
    """Start a node in a container.

    The container image runs this command. Without any variable it is a whole Kafka, with a volume of its own.
    KAFKA_PROCESS_ROLES=controller or broker makes it a node of a larger cluster.

    KRAFTD_CONFIG is the .properties file. Default: server.properties, controller.properties or
    broker.properties in /etc/kraftd, by the roles. Each variable such as KAFKA_NODE_ID or
    KRAFTD_METRICS_LISTENER overrides one key of the file.

    \b
    KRAFTD_FORMAT says how a new directory is formatted:
      standalone           a new quorum with this controller as its only voter;
                           the default of a whole Kafka whose file names no other controller
      initial-controllers  a new quorum of KRAFTD_INITIAL_CONTROLLERS (id@host:port:directory-id,...),
                           or, if one of them has a log, an observer of the quorum that lives
      join                 an existing quorum, or one that is formatted elsewhere;
                           the default of a broker
      static               the quorum of controller.quorum.voters
    All but standalone need CLUSTER_ID, too; standalone draws a random one if it is not set.
    """
    from os import environ

    from kraftd.cli.start import QUORUM_LIVES, run_node, signal_stops

    if not check:
        signal_stops()
    config = load_with(environ)
    if check:
        return OK if answers(config, environ.get("KRAFTD_BOOTSTRAP")) else FAILED
    rejoins = environ.get("KRAFTD_FORMAT") == "initial-controllers"
    format_if_new(config, environ)
    while (code := run_node(config, rejoins=rejoins)) == QUORUM_LIVES:
        format_as_observer(config)
    return code


def load_with(environment: Mapping[str, str]) -> DaemonConfig:
    """The file with the environment's keys over it. Raises ConfigError."""
    from kraftd.config import ConfigError, load
    from kraftd.config.settings import OVERRIDE

    try:
        return load(file_of(environment), keys_of(environment))
    except ConfigError as error:
        shown = [problem.replace(f"({OVERRIDE})", "(environment)") for problem in error.problems]
        raise ConfigError(shown) from None


def file_of(environment: Mapping[str, str]) -> str:
    """The .properties file: the one that KRAFTD_CONFIG names, or that of the image for the node's roles."""
    roles = frozenset(role.strip() for role in environment.get("KAFKA_PROCESS_ROLES", "").split(","))
    return environment.get("KRAFTD_CONFIG", f"{FILES}/{FILE_OF_ROLES.get(roles, WHOLE_KAFKA)}")


def keys_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """`key=value` for each variable that stands for a key."""
    found = []
    for name, value in sorted(environment.items()):
        if name in OWN or name in JVM or name.startswith(JVM_PREFIXES):
            continue
        if name.startswith("KAFKA_"):
            found.append(f"{_key(name.removeprefix('KAFKA_'))}={value}")
        elif name.startswith("KRAFTD_"):
            found.append(f"{_key(name)}={value}")
    return tuple(found)


def _key(name: str) -> str:
    """A variable's name as a key: `___` is a dash, `__` an underscore, `_` a dot."""
    return name.lower().replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def format_if_new(config: DaemonConfig, environment: Mapping[str, str]) -> None:
    """Format the directories, unless the metadata directory is formatted.

    Raises CommandFailure if KRAFTD_FORMAT is missing, or if CLUSTER_ID is not that of a formatted directory.
    """
    from pathlib import Path

    from kraftd.cli.identity import new_uuid
    from kraftd.cli.storage.format import format_node, initial_voters
    from kraftd.types import uuid_text

    if Path(config.metadata_log_dir, "meta.properties").exists():
        check_cluster_id(config, environment.get("CLUSTER_ID", ""))
        return
    way = environment.get("KRAFTD_FORMAT") or way_of(config)
    if way not in WAYS:
        problem = f"KRAFTD_FORMAT={way}: must be" if way else "KRAFTD_FORMAT is not set; set it to"
        raise CommandFailure(
            f"{config.metadata_log_dir} is not formatted. {problem} one of {', '.join(WAYS)}, "
            "or mount a directory that is formatted.",
            USAGE if way else DIRECTORY,
        )
    cluster_id = environment.get("CLUSTER_ID", "")
    if not cluster_id:
        if way != "standalone":
            raise CommandFailure(f"KRAFTD_FORMAT={way} needs CLUSTER_ID, the id of the cluster.", USAGE)
        cluster_id = uuid_text(new_uuid())
    controllers = environment.get("KRAFTD_INITIAL_CONTROLLERS") if way == "initial-controllers" else None
    if way == "initial-controllers" and not controllers:
        raise CommandFailure(
            "KRAFTD_FORMAT=initial-controllers needs KRAFTD_INITIAL_CONTROLLERS, "
            "id@host:port:directory-id,... (the same for all of them).",
            USAGE,
        )
    if way == "static" and not config.is_static_quorum:
        raise CommandFailure("KRAFTD_FORMAT=static needs controller.quorum.voters.", USAGE)
    voters = initial_voters(config, way == "standalone", controllers, way == "join")
    if voters is not None and [one.id for one in voters] == [config.node_id]:
        voters = None if lives(config, cluster_id, way) else voters
    format_node(config, cluster_id, voters, ignore_formatted=True)


def way_of(config: DaemonConfig) -> str:
    """How a new directory is formatted without KRAFTD_FORMAT.

    "" for a controller that may have a quorum: if its volume is lost, it must not begin a second one.
    """
    if not config.is_controller:
        return "join"
    known = {*LOOPBACK, *(one.host for one in config.advertised_listeners)}
    is_alone = all(host in known for host, _ in config.quorum_bootstrap_servers)
    return "standalone" if config.is_broker and is_alone and not config.is_static_quorum else ""


def check_cluster_id(config: DaemonConfig, cluster_id: str) -> None:
    """Raise CommandFailure if a formatted directory is of another cluster than the environment names."""
    from kraftd.log.disk import RealDisk
    from kraftd.metadata_dir.files.meta_properties import read_meta_properties

    for directory in config.data_dirs:
        found = read_meta_properties(RealDisk(), directory)
        if cluster_id and found is not None and found.cluster_id not in (None, cluster_id):
            raise CommandFailure(
                f"CLUSTER_ID={cluster_id} in the environment, but {directory} is of cluster "
                f"{found.cluster_id}. Mount the volume of cluster {cluster_id}, or correct CLUSTER_ID.",
                DIRECTORY,
            )


def lives(config: DaemonConfig, cluster_id: str, way: str) -> bool:
    """Return whether another controller of the cluster answers: then its only voter has lost its volume.

    Raises CommandFailure for a controller of another cluster.
    """
    from kraftd.cli.cluster_options import run
    from kraftd.cli.doctor.examine import log_in_as
    from kraftd.cli.quorum.voter_probe import Presence, ask_voters

    own = {(one.host, one.port) for one in config.advertised_listeners}
    servers = [one for one in config.quorum_bootstrap_servers if one not in own]
    log_in_as(config, [])
    asked = {-1 - number: (server,) for number, server in enumerate(servers)}
    for answer in run(ask_voters(asked, cluster_id, PROBE_S)):
        if answer.cluster_id not in (None, cluster_id):
            raise CommandFailure(
                f"{answer.at} is a node of cluster {answer.cluster_id}, and this node is to be of "
                f"{cluster_id} (CLUSTER_ID; {way} draws one if it is not set). Correct CLUSTER_ID or "
                "controller.quorum.bootstrap.servers.",
                DIRECTORY,
            )
        # One that waits for its first leader, perhaps for this node, is in epoch 0 and names no cluster.
        is_member = answer.cluster_id == cluster_id or answer.epoch > 0
        if answer.quorum is not None or (answer.presence is Presence.THERE and is_member):
            click.echo(f"{answer.at} is a node of this cluster: this controller joins it, as an observer.")
            return True
    return False


def format_as_observer(config: DaemonConfig) -> None:
    """Format the new directory of a voter under a fresh directory id: the quorum lives."""
    from kraftd.cli.storage.format import format_node
    from kraftd.log.disk import RealDisk
    from kraftd.metadata_dir.directory import LOCK_FILE
    from kraftd.metadata_dir.formatting.format import unformat_new_voter

    disk, directory = RealDisk(), config.metadata_log_dir
    lock = disk.lock(f"{directory}/{LOCK_FILE}")
    try:
        cluster_id = unformat_new_voter(disk, directory)
        click.echo(
            f"{directory} is new, but other controllers of cluster {cluster_id} have a log: this node joins "
            "them as an observer, under a fresh directory id."
        )
        format_node(config, cluster_id, None, ignore_formatted=True)
    finally:
        lock.release()


def answers(config: DaemonConfig, bootstrap: str | None) -> bool:
    """Return whether the node answers on `bootstrap` (host:port), or on its own first listener.

    Raises CommandFailure where `bootstrap` is no host:port.
    """
    import socket

    from kraftd.configdef.addresses import parse_host_port

    try:
        host, port = parse_host_port(bootstrap.strip()) if bootstrap else address(config.listeners[0])
    except ValueError as error:
        raise CommandFailure(f"KRAFTD_BOOTSTRAP={bootstrap}: {error}.", USAGE) from None
    request = b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff"  # ApiVersions v0, which every listener answers
    try:
        with socket.create_connection((host, port), CHECK_TIMEOUT_S) as connection:
            connection.settimeout(CHECK_TIMEOUT_S)
            connection.sendall(request)
            return len(connection.recv(4)) == 4
    except OSError:
        return False


def address(listener: Endpoint) -> tuple[str, int]:
    """Where a listener is reached from its own machine."""
    host = listener.host or "127.0.0.1"
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), listener.port
