"""What must hold between keys: the rules that Kafka's KafkaConfig has for a controller, and kraftd's own
limits.
"""

from __future__ import annotations

from collections.abc import Mapping

from kraftd.config.daemon import DaemonConfig, build
from kraftd.config.errors import ConfigError
from kraftd.config.findings import Findings
from kraftd.config.listeners import (
    PROTOCOLS,
    WILDCARD,
    advertise,
    check_shared_port,
    parse_listeners,
    parse_metrics_listener,
    parse_protocol_map,
    with_default_protocols,
)
from kraftd.config.settings import Setting
from kraftd.configdef.addresses import parse_bootstrap_server, parse_voter
from kraftd.configdef.definition import Value
from kraftd.configdef.node import NodeConfig
from kraftd.types import Endpoint

Values = Mapping[str, Value]
Settings = Mapping[str, Setting]

# The first must not be greater than the second.
ORDERED = (
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    *(
        pair
        for kind in ("consumer", "share", "streams")
        for what in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
        for pair in (
            (f"group.{kind}.min.{what}", f"group.{kind}.{what}"),
            (f"group.{kind}.{what}", f"group.{kind}.max.{what}"),
        )
    ),
    ("group.streams.num.standby.replicas", "group.streams.max.standby.replicas"),
    *(
        pair
        for what in ("delivery.count.limit", "partition.max.record.locks", "record.lock.duration.ms")
        for pair in (
            (f"group.share.min.{what}", f"group.share.{what}"),
            (f"group.share.{what}", f"group.share.max.{what}"),
        )
    ),
    ("group.share.max.size", "group.share.max.share.sessions"),
)
MIN_DEDUPE_BYTES = 1024 * 1024


def check(
    values: Values, own: Values, settings: Settings, node_config: NodeConfig, warnings: list[str]
) -> DaemonConfig:
    """The configuration, when all its parts agree. Raises ConfigError with everything that does not."""
    findings = Findings(settings, values, warnings)
    check_roles(values, findings)
    voters = {
        node: (host, port) for node, host, port in map(parse_voter, items(values, "controller.quorum.voters"))
    }
    listeners, announced = check_listeners(values, voters, findings)
    check_quorum(values, voters, findings)
    check_numbers(values, node_config, findings)
    ip_overrides = check_ip_overrides(values, findings)
    metrics_listener = check_metrics_listener(own, listeners, findings)
    if findings.problems:
        raise ConfigError(findings.problems)
    servers = items(values, "controller.quorum.bootstrap.servers")
    return build(
        values,
        own,
        listeners=listeners,
        advertised_listeners=announced,
        voters=voters,
        bootstrap_servers=tuple(parse_bootstrap_server(server) for server in servers),
        ip_overrides=ip_overrides,
        metrics_listener=metrics_listener,
        node_config=node_config,
        warnings=tuple(warnings),
    )


def items(values: Values, key: str) -> list[str]:
    value = values[key]
    return value if isinstance(value, list) else []


def number(values: Values, key: str) -> float:
    value = values[key]
    assert isinstance(value, int | float)
    return value


def check_roles(values: Values, findings: Findings) -> None:
    if items(values, "process.roles") != ["controller"]:
        why = (
            "kraftd is a controller, and no broker yet; set process.roles=controller, and run Apache Kafka's "
        )
        findings.refuse("process.roles", why + "brokers as processes of their own")
    if values["node.id"] != values["broker.id"]:
        findings.refuse("node.id", f"broker.id={values['broker.id']} says otherwise; remove broker.id")


def check_listeners(
    values: Values, voters: Mapping[int, tuple[str, int]], findings: Findings
) -> tuple[tuple[Endpoint, ...], tuple[Endpoint, ...]]:
    """The endpoints to bind and those to announce; none where they could not be read."""
    names = items(values, "controller.listener.names")
    texts, given = items(values, "listeners"), items(values, "advertised.listeners")
    key = "listener.security.protocol.map"
    try:
        protocols = parse_protocol_map(str(values[key]))
        if not findings.is_set(key):
            protocols = with_default_protocols(protocols, texts, names)
        key = "listeners"
        listeners = parse_listeners(texts, protocols)
        key = "advertised.listeners"
        advertised = parse_listeners(given, protocols, distinct_ports=False)
    except ValueError as error:
        findings.refuse(key, str(error))
        return (), ()
    check_controller_names(names, listeners, findings)
    check_other_listeners(names, listeners, protocols, values, findings)
    node_id = values["node.id"]
    assert isinstance(node_id, int)
    announced = advertise(names, listeners, advertised, voters.get(node_id))
    if any(endpoint.host == WILDCARD for endpoint in (*announced, *advertised)):
        why = f"nobody can connect to {WILDCARD}; give a host name or an address that others reach"
        findings.refuse("advertised.listeners", why)
    return listeners, announced


def check_controller_names(names: list[str], listeners: tuple[Endpoint, ...], findings: Findings) -> None:
    """Every controller listener is listened on, nothing else is, and each is of a protocol that is served."""
    bound = {endpoint.listener for endpoint in listeners}
    for name in names:
        if name not in bound:
            why = f"there is no listener named {name} in {findings.said('listeners')}"
            if name.upper() in bound:
                why += f"; write {name.upper()}"
            findings.refuse("controller.listener.names", why)
    for endpoint in listeners:
        if endpoint.listener not in (name.upper() for name in names):
            why = f"{endpoint.listener} is no controller listener, and a controller has no other; "
            findings.refuse("listeners", why + "name it in controller.listener.names or remove it")
        if endpoint.security_protocol != PROTOCOLS["PLAINTEXT"]:
            protocol = next(
                name for name, number in PROTOCOLS.items() if number == endpoint.security_protocol
            )
            why = f"{endpoint.listener} is {protocol}, and kraftd serves only PLAINTEXT yet"
            findings.refuse("listeners", why)


def check_other_listeners(
    names: list[str],
    listeners: tuple[Endpoint, ...],
    protocols: Mapping[str, str],
    values: Values,
    findings: Findings,
) -> None:
    """Keys that name listeners of brokers, or listeners that start early."""
    inter_broker = values["inter.broker.listener.name"]
    if isinstance(inter_broker, str):
        name = inter_broker.upper()
        if findings.is_set("security.inter.broker.protocol"):
            why = "security.inter.broker.protocol is set too; remove one of them"
            findings.refuse("inter.broker.listener.name", why)
        elif name not in protocols:
            findings.refuse("inter.broker.listener.name", "it is not in listener.security.protocol.map")
        elif name in names:
            why = "it is a controller listener, and brokers need one of their own"
            findings.refuse("inter.broker.listener.name", why)
    known = {endpoint.listener for endpoint in listeners}
    for name in filter(None, items(values, "early.start.listeners")):
        findings.require(name.upper() in known, "early.start.listeners", f"there is no listener named {name}")


def check_quorum(values: Values, voters: Mapping[int, tuple[str, int]], findings: Findings) -> None:
    if not voters and not items(values, "controller.quorum.bootstrap.servers"):
        findings.problems.append(
            "neither controller.quorum.bootstrap.servers nor controller.quorum.voters is set; add a line "
            "like controller.quorum.bootstrap.servers=127.0.0.1:9093"
        )
    if voters and values["node.id"] not in voters:
        why = f"node.id={values['node.id']} is not among the voters; add this node, or correct node.id"
        findings.refuse("controller.quorum.voters", why)


def check_numbers(values: Values, node_config: NodeConfig, findings: Findings) -> None:
    """What numbers must be to one another."""
    for low, high in ORDERED:
        holds = number(values, low) <= number(values, high)
        key = low if findings.is_set(low) else high
        findings.require(holds, key, f"{low}={values[low]} must not be greater than {high}={values[high]}")
    for kind in ("consumer", "share", "streams"):
        low, high = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        holds = number(values, low) < number(values, high)
        findings.require(holds, low, f"must be less than {high}={values[high]}")
    topic = node_config.topic_defaults
    findings.require(number(topic, "segment.ms") >= 1, "log.roll.ms", "must be at least 1")
    findings.require(number(topic, "segment.jitter.ms") >= 0, "log.roll.jitter.ms", "must be at least 0")
    holds = number(topic, "retention.ms") != 0
    findings.require(holds, "log.retention.ms", "must be at least 1, or -1 for no limit")
    dedupe_bytes = number(values, "log.cleaner.dedupe.buffer.size")
    holds = dedupe_bytes // number(values, "log.cleaner.threads") > MIN_DEDUPE_BYTES
    why = f"must be more than {MIN_DEDUPE_BYTES} bytes for each of log.cleaner.threads"
    findings.require(holds, "log.cleaner.dedupe.buffer.size", why)
    queued, request = number(values, "queued.max.request.bytes"), number(values, "socket.request.max.bytes")
    why = f"must hold one request of socket.request.max.bytes={request}, or be -1"
    findings.require(queued <= 0 or queued >= request, "queued.max.request.bytes", why)
    idle_ms = number(values, "connections.max.idle.ms")
    delay_ms = number(values, "connection.failed.authentication.delay.ms")
    why = f"must be less than connections.max.idle.ms={idle_ms}"
    holds = idle_ms < 0 or delay_ms < idle_ms
    findings.require(holds, "connection.failed.authentication.delay.ms", why)
    protocols = [name.lower() for name in items(values, "group.coordinator.rebalance.protocols")]
    why = "classic must be one of them"
    findings.require("classic" in protocols, "group.coordinator.rebalance.protocols", why)
    session_ms = number(values, "broker.session.timeout.ms")
    heartbeat_ms = number(values, "broker.heartbeat.interval.ms")
    if heartbeat_ms * 2 > session_ms:
        findings.warnings.append(
            f"broker.session.timeout.ms={session_ms} is less than twice "
            f"broker.heartbeat.interval.ms={heartbeat_ms}: brokers may be fenced between two heartbeats"
        )


def check_ip_overrides(values: Values, findings: Findings) -> dict[str, int]:
    """``max.connections.per.ip.overrides``: connections at once, by host."""
    key = "max.connections.per.ip.overrides"
    overrides = {}
    for item in filter(None, (part.strip() for part in str(values[key] or "").split(","))):
        host, _, count = item.rpartition(":")
        if host and count.strip().isdecimal():
            overrides[host.strip()] = int(count)
        else:
            findings.refuse(key, f"{item} must be host:number")
    if values["max.connections.per.ip"] == 0 and not overrides:
        findings.refuse("max.connections.per.ip", f"nobody could connect; 0 needs {key}")
    return overrides


def check_metrics_listener(
    own: Values, listeners: tuple[Endpoint, ...], findings: Findings
) -> Endpoint | None:
    """Where metrics are served; None for nowhere."""
    key = "kraftd.metrics.listener"
    try:
        found = parse_metrics_listener(str(own[key] or ""))
        if found is not None and found.port:
            hosts = [found.host, *(one.host for one in listeners if one.port == found.port)]
            check_shared_port(found.port, hosts)
    except ValueError as error:
        findings.refuse(key, str(error))
        return None
    return found
