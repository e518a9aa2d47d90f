"""The rows of kraftd's own keys."""

from __future__ import annotations

from kraftd.config.listeners import parse_metrics_listener, parse_metrics_nodes
from kraftd.config.rows import Row, as_strings, integer, own, string, strings
from kraftd.configdef.definition import Value


def parse_node_ids(value: Value) -> frozenset[int]:
    """The ids in a list. Raises ValueError."""
    for text in as_strings(value):
        if not text.isascii() or not text.isdecimal():
            raise ValueError(f"{text} is no node id; give ids, like 2,3")
    return frozenset(map(int, as_strings(value)))


class OwnKeys:
    """kraftd's own"""

    log_format = string(
        "kraftd.log.format",
        "console, json, or auto: console on a terminal, json elsewhere",
        **own("kraftd.log.format", "string", "auto", ("in", ("auto", "console", "json"))),
    )
    log_level = string(
        "kraftd.log.level",
        "debug, info, warning or error",
        **own("kraftd.log.level", "string", "info", ("in", ("debug", "info", "warning", "error"))),
    )
    metadata_snapshot_timeout_ms = integer(
        "kraftd.metadata.snapshot.timeout.ms",
        "how long the process that makes a snapshot may take before it is killed",
        **own("kraftd.metadata.snapshot.timeout.ms", "int", "600000", ("range", 1, None)),
    )
    metrics_listener = Row(
        lambda value: parse_metrics_listener(str(value or "")),
        "kraftd.metrics.listener",
        "where /metrics, /healthz and /readyz are served, host:port; an empty host is every interface; "
        "https:// before it is TLS, by `listener.name.metrics.ssl.*` or `ssl.*`; nowhere when not set "
        "([metrics.md](metrics.md))",
        **own("kraftd.metrics.listener", "string", ""),
    )
    metrics_user = string(
        "kraftd.metrics.user",
        "the user that may read them, by HTTP's Basic authentication; every client may when not set",
        **own("kraftd.metrics.user", "string", ""),
    )
    metrics_password = string(
        "kraftd.metrics.password",
        "the password of that user",
        **own("kraftd.metrics.password", "password", ""),
    )
    metrics_hosts = strings(
        "kraftd.metrics.hosts",
        "further host names under which browsers and Prometheus ask for the metrics listener's pages; known "
        "without it: addresses, `localhost`, the host's own name, and the hosts of this node's listeners",
        **own("kraftd.metrics.hosts", "list", ""),
    )
    metrics_names = strings(
        "kraftd.metrics.names",
        "a second set of names in /metrics, for dashboards of Apache Kafka: `strimzi`, `jmx-exporter`, or "
        "both ([metrics.md](metrics.md#names-for-dashboards-of-apache-kafka))",
        **own("kraftd.metrics.names", "list", "", ("list", ("strimzi", "jmx-exporter"), True, False)),
    )
    metrics_nodes = Row(
        lambda value: parse_metrics_nodes(as_strings(value)),
        "kraftd.metrics.nodes",
        "the metrics listeners of other controllers, ID@host:port, for the links of the status page; "
        "if not named, the host of a controller with this node's metrics port",
        **own("kraftd.metrics.nodes", "list", "", ("list", (), True, False)),
    )
    audit_log = string(
        "kraftd.audit.log",
        "where committed changes and refusals are written as JSON lines: a file, or `stderr`; nowhere when "
        "not set ([audit.md](audit.md))",
        **own("kraftd.audit.log", "string", ""),
    )
    first_election_without = Row(
        parse_node_ids,
        "kraftd.first.election.without",
        "ids of controllers that the first election of a new quorum does not wait for; it waits for all "
        "others, so that lost volumes never become a new cluster "
        "([quorum.md](quorum.md#the-first-election))",
        **own("kraftd.first.election.without", "list", ""),
    )
    scrub_interval_ms = integer(
        "kraftd.scrub.interval.ms",
        "how often all files on disk are read and checked; 0 is never",
        **own("kraftd.scrub.interval.ms", "long", "86400000", ("range", 0, None)),
    )
    shutdown_timeout_ms = integer(
        "kraftd.shutdown.timeout.ms",
        "how long a stop may wait for requests in progress",
        **own("kraftd.shutdown.timeout.ms", "int", "10000", ("range", 0, None)),
    )
