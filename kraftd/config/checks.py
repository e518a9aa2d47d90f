"""Checks between keys: the rules of Kafka's KafkaConfig for a controller, and kraftd's own limits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from kraftd.config.daemon import DaemonConfig
from kraftd.config.errors import ConfigError
from kraftd.config.findings import Findings
from kraftd.config.listeners import (
    PROTOCOLS,
    WILDCARD,
    advertise,
    are_apart,
    check_shared_port,
    parse_listeners,
    with_default_protocols,
)
from kraftd.config.rows import Unread
from kraftd.config.security import ClientSecurity, read_broker_login, read_security
from kraftd.config.security_keys import Keys
from kraftd.config.settings import Setting
from kraftd.configdef.replica_selector import RACK_AWARE
from kraftd.types import Endpoint

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
CODECS = ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec")
SHARE_ASSIGNORS = ("simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor")
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")


def check(config: DaemonConfig, settings: Settings, findings: Findings) -> DaemonConfig:
    """The configuration with its listeners, if all its parts agree.

    A check is left out if its values could not be read: the findings name them already. Raises ConfigError
    with these problems and with every contradiction.
    """
    for attempt in (
        partial(check_roles, config, findings),
        partial(check_own_id, config, findings),
        partial(check_directories, config, findings),
        partial(check_listeners, config, settings, findings),
        partial(check_quorum, config, findings),
        partial(check_own_voter, config, findings),
        partial(check_metadata_segments, findings),
        *(partial(check_order, low, high, findings) for low, high in ORDERED),
        *(partial(check_heartbeats, kind, findings) for kind in ("consumer", "share", "streams")),
        partial(check_topic_defaults, config, findings),
        partial(check_dedupe_buffer, findings),
        partial(check_replica_selector, config, findings),
        partial(check_queued_requests, findings),
        partial(check_idle_connections, findings),
        partial(check_rebalance_protocols, config, findings),
        *(partial(check_codec, key, findings) for key in CODECS),
        partial(check_share_assignors, config, findings),
        partial(check_broker_session, config, findings),
        partial(check_connections_per_ip, config, findings),
        partial(check_listener_limits, config, settings, findings),
        partial(check_metrics_listener, config, findings),
    ):
        with suppress(Unread):
            attempt()
    if findings.problems:
        raise ConfigError(list(dict.fromkeys(findings.problems)))
    config.warnings = tuple(findings.warnings)
    return config


def check_roles(config: DaemonConfig, findings: Findings) -> None:
    roles = config.process_roles
    if not roles or not {*roles} <= {"broker", "controller"} or len({*roles}) < len(roles):
        why = "must be controller, broker, or both: process.roles=broker,controller"
        findings.refuse("process.roles", why)


def check_directories(config: DaemonConfig, findings: Findings) -> None:
    """One directory by two names would have an id twice: Kafka does not start either."""
    names: dict[str, str] = {}
    for name in (*config.log_dirs, config.metadata_log_dir):
        before = names.setdefault(os.path.realpath(name), name)
        if before != name:
            findings.refuse("log.dirs", f"{before} and {name} are one directory; use one name for it")


def check_own_id(config: DaemonConfig, findings: Findings) -> None:
    if config.node_id != config.broker_id:
        findings.refuse("node.id", f"broker.id={config.broker_id} says otherwise; remove broker.id")


def check_listeners(config: DaemonConfig, settings: Settings, findings: Findings) -> None:
    """Set the configuration's endpoints to bind and to advertise; none if they cannot be parsed."""
    names, texts = config.controller_listener_names, config.listener_texts
    protocols: Mapping[str, str] = config.security_protocol_map
    if not findings.is_set("listener.security.protocol.map"):
        protocols = with_default_protocols(protocols, texts, (*names, *config.client_listener_names))
    listeners = advertised = None
    try:
        config.listeners = listeners = parse_listeners(texts, protocols)
    except ValueError as error:
        findings.refuse("listeners", str(error))
    try:
        advertised = parse_listeners(config.advertised_listener_texts, protocols, distinct_ports=False)
    except ValueError as error:
        findings.refuse("advertised.listeners", str(error))
    if listeners is None or advertised is None:
        return
    clients = config.client_listener_names
    others = {name.upper() for name in (*names, *clients)}
    brokers = [one.listener for one in listeners if config.is_broker and one.listener not in others]
    if config.is_controller:
        check_controller_names(names, (*clients, *brokers), listeners, findings)
    else:
        check_no_controller_listener(names, listeners, findings)
    check_client_names(config, listeners, findings)
    if config.is_broker:
        check_broker_listeners(config, brokers, findings)
    check_other_listeners(config, listeners, protocols, findings)
    announced = advertise(names, listeners, advertised, config.quorum_voters.get(config.node_id))
    for_clients = advertise(clients, listeners, advertised, None)
    if any(endpoint.host == WILDCARD for endpoint in (*announced, *advertised)):
        why = f"no node can connect to {WILDCARD}; give a host name or an address that others reach"
        findings.refuse("advertised.listeners", why)
    config.advertised_listeners = announced
    config.client_listeners = for_clients
    config.broker_listeners = advertise(brokers, listeners, advertised, None)
    # The quorum's listener comes first: its keys configure the node's own logins.
    order = [name.upper() for name in names]
    known = sorted(listeners, key=lambda one: one.listener not in order[:1])
    metrics = config.metrics_listener
    if metrics is not None:
        if metrics.listener in (one.listener for one in known):
            findings.refuse("listeners", "METRICS is the name of kraftd.metrics.listener; choose another")
            return
        known.append(metrics)
    logins = broker_logins(config, settings, protocols, findings) if clients else {}
    if config.is_broker:
        why = "so it follows no leaders"
        logins |= login_at_brokers(config.inter_broker_listener, settings, protocols, findings, why)
    config.security = read_security(
        settings, known, findings, logins, quorum=quorum_endpoint(names, known, protocols)
    )


def quorum_endpoint(
    names: tuple[str, ...], known: list[Endpoint], protocols: Mapping[str, str]
) -> Endpoint | None:
    """The quorum's listener, whose keys configure this node's logins; on a broker alone it is elsewhere."""
    if not names:
        return None
    name = names[0].upper()
    elsewhere = Endpoint(name, "", 0, PROTOCOLS[protocols[name]]) if name in protocols else None
    return next((one for one in known if one.listener == name), elsewhere)


def broker_logins(
    config: DaemonConfig, settings: Settings, protocols: Mapping[str, str], findings: Findings
) -> dict[str, ClientSecurity]:
    """The node's logins at brokers, by their listener.

    No login is needed if no broker has a listener of that name. So a missing login there is only a warning.
    """
    key = "kraftd.client.broker.listener.name"
    named = config.client_broker_listener_name.upper()
    if named and named not in protocols:
        why = f"it is not in listener.security.protocol.map; add {named}:PLAINTEXT, or what the brokers have"
        findings.refuse(key, why)
        return {}
    if named:
        return {named: read_broker_login(settings, named, PROTOCOLS[protocols[named]], findings)}
    logins: dict[str, ClientSecurity] = {}
    for name in map(str.upper, config.client_listener_names):
        why = "so its clients find no coordinator"
        logins |= login_at_brokers(name, settings, protocols, findings, why)
    return logins


def login_at_brokers(
    name: str, settings: Settings, protocols: Mapping[str, str], findings: Findings, therefore: str
) -> dict[str, ClientSecurity]:
    """The node's login at a listener of brokers; without one, what follows from that is a warning."""
    if name not in protocols:
        return {}
    found = Findings(settings, {}, [])
    login = read_broker_login(settings, name, PROTOCOLS[protocols[name]], found)
    if not found.problems:
        return {name: login}
    why = "; ".join(found.problems)
    findings.warnings.append(f"{name}: this node cannot log in at brokers, {therefore}: {why}")
    return {}


def check_client_names(config: DaemonConfig, listeners: tuple[Endpoint, ...], findings: Findings) -> None:
    """Check that every client listener is in `listeners`, and is no controller listener."""
    bound = {endpoint.listener for endpoint in listeners}
    controllers = {name.upper() for name in config.controller_listener_names}
    key = "kraftd.client.listener.names"
    for name in map(str.upper, config.client_listener_names):
        if name not in bound:
            shown = findings.shown("listeners")
            findings.refuse(key, f"there is no listener named {name} in {shown}; add {name}://:9092 there")
        elif name in controllers:
            why = f"{name} is a controller listener, and ordinary clients need another; remove it from one"
            findings.refuse(key, why)
    if config.client_broker_listener_name and not config.client_listener_names:
        why = f"it does nothing without {key}; name the listener of the clients there"
        findings.refuse("kraftd.client.broker.listener.name", why)


def check_controller_names(
    names: tuple[str, ...],
    clients: tuple[str, ...],
    listeners: tuple[Endpoint, ...],
    findings: Findings,
) -> None:
    """Check that every controller listener is in `listeners`, and no other is."""
    bound = {endpoint.listener for endpoint in listeners}
    for name in names:
        if name not in bound:
            why = f"there is no listener named {name} in {findings.shown('listeners')}"
            if name.upper() in bound:
                why += f"; write {name.upper()}"
            findings.refuse("controller.listener.names", why)
    for endpoint in listeners:
        if endpoint.listener not in (name.upper() for name in (*names, *clients)):
            why = f"{endpoint.listener} is no controller listener, and none for ordinary clients; name it in "
            why += "controller.listener.names or kraftd.client.listener.names, or remove it"
            findings.refuse("listeners", why)


def check_no_controller_listener(
    names: tuple[str, ...], listeners: tuple[Endpoint, ...], findings: Findings
) -> None:
    """Check that a broker alone has no controller listener of its own."""
    bound = {endpoint.listener for endpoint in listeners}
    for name in names:
        if name.upper() in bound:
            why = f"a broker alone has no listener of the controllers; remove {name} from listeners"
            findings.refuse("controller.listener.names", why)


def check_broker_listeners(config: DaemonConfig, brokers: list[str], findings: Findings) -> None:
    """Check that the broker has a listener, and one for other brokers."""
    if not brokers:
        why = "the broker needs a listener of its own; add PLAINTEXT://:9092"
        findings.refuse("listeners", why)
        return
    key = "inter.broker.listener.name"
    if not config.inter_broker_listener_name:
        key = "security.inter.broker.protocol"
    name = config.inter_broker_listener
    if name not in brokers and name not in map(str.upper, config.controller_listener_names):
        why = f"the broker has no listener named {name}, and brokers need one for each other; there are "
        findings.refuse(key, why + ", ".join(brokers))


def check_other_listeners(
    config: DaemonConfig,
    listeners: tuple[Endpoint, ...],
    protocols: Mapping[str, str],
    findings: Findings,
) -> None:
    """Check keys that name listeners of brokers, or listeners that start early."""
    name = config.inter_broker_listener_name.upper()
    if name:
        if findings.is_set("security.inter.broker.protocol"):
            why = f"security.inter.broker.protocol={config.inter_broker_protocol} is set too; remove one"
            findings.refuse("inter.broker.listener.name", why)
        elif name not in protocols:
            findings.refuse("inter.broker.listener.name", "it is not in listener.security.protocol.map")
        elif name in config.controller_listener_names:
            why = "it is a controller listener, and brokers need one of their own"
            findings.refuse("inter.broker.listener.name", why)
    known = {endpoint.listener for endpoint in listeners}
    for early in filter(None, config.early_start_listeners):
        why = f"there is no listener named {early}"
        findings.require(early.upper() in known, "early.start.listeners", why)


def check_quorum(config: DaemonConfig, findings: Findings) -> None:
    if not config.quorum_voters and not config.quorum_bootstrap_servers:
        findings.problems.append(
            "neither controller.quorum.bootstrap.servers nor controller.quorum.voters is set; add a line "
            "like controller.quorum.bootstrap.servers=127.0.0.1:9093"
        )
    is_voter = config.node_id in config.quorum_voters
    if config.is_controller and config.quorum_voters and not is_voter:
        why = f"node.id={config.node_id} is not among the voters; add this node, or correct node.id"
        findings.refuse("controller.quorum.voters", why)
    if is_voter and not config.is_controller:
        why = f"node.id={config.node_id} is a voter's, and a broker alone needs another; correct node.id"
        findings.refuse("controller.quorum.voters", why)


def check_own_voter(config: DaemonConfig, findings: Findings) -> None:
    """Check that each id is unique, and that this node listens where the others expect it."""
    texts = [text.strip() for text in findings.text("controller.quorum.voters").split(",") if text.strip()]
    ids = [text.partition("@")[0] for text in texts]
    for twice in sorted({one for one in ids if ids.count(one) > 1}):
        findings.refuse("controller.quorum.voters", f"node {twice} is there twice; name each voter once")
    for node_id in [one for one, (host, _) in config.quorum_voters.items() if host == WILDCARD]:
        why = f"no node can connect to node {node_id} at {WILDCARD}; give a host name or an address"
        findings.refuse("controller.quorum.voters", why)
    own = config.quorum_voters.get(config.node_id)
    ports = {one.port for one in config.listeners}
    if own is None or 0 in ports or findings.is_set("advertised.listeners"):
        return
    there = [one for one in config.listeners if one.port == own[1]]
    if there and all(are_apart(one.host, own[0]) for one in there):
        findings.warnings.append(
            f"controller.quorum.voters has this node at {own[0]}:{own[1]}, and it listens on {there[0].host} "
            "alone: the others will not find it unless that address is forwarded; listen on it, or on every "
            f"address ({there[0].listener}://:{own[1]})"
        )
    if own[1] not in ports:
        findings.warnings.append(
            f"controller.quorum.voters has this node at {own[0]}:{own[1]}, and it listens on port "
            f"{', '.join(map(str, sorted(ports)))}: the others will not find it unless that port is forwarded"
        )


def check_metadata_segments(findings: Findings) -> None:
    key = "metadata.log.segment.ms"
    findings.require(findings.number(key) >= 1, key, "must be at least 1")


def check_order(low: str, high: str, findings: Findings) -> None:
    """Check that the first number is not greater than the second."""
    least, most = findings.number(low), findings.number(high)
    key = low if findings.is_set(low) else high
    findings.require(least <= most, key, f"{low}={least} must not be greater than {high}={most}")


def check_heartbeats(kind: str, findings: Findings) -> None:
    low, high = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
    most = findings.number(high)
    findings.require(findings.number(low) < most, low, f"must be less than {high}={most}")


def check_topic_defaults(config: DaemonConfig, findings: Findings) -> None:
    topic = config.node_config.topic_defaults

    def number(key: str) -> float:
        value = topic[key]
        assert isinstance(value, int | float)
        return value

    findings.require(number("segment.ms") >= 1, "log.roll.ms", "must be at least 1")
    findings.require(number("segment.jitter.ms") >= 0, "log.roll.jitter.ms", "must be at least 0")
    holds = number("retention.ms") != 0
    findings.require(holds, "log.retention.ms", "must be at least 1, or -1 for no limit")


def check_dedupe_buffer(findings: Findings) -> None:
    threads, dedupe_bytes = (
        findings.number("log.cleaner.threads"),
        findings.number("log.cleaner.dedupe.buffer.size"),
    )
    findings.require(threads > 0, "log.cleaner.threads", "must be at least 1")
    holds = dedupe_bytes // max(threads, 1) > MIN_DEDUPE_BYTES
    why = f"must be more than {MIN_DEDUPE_BYTES} bytes for each of log.cleaner.threads"
    findings.require(holds, "log.cleaner.dedupe.buffer.size", why)


def check_replica_selector(config: DaemonConfig, findings: Findings) -> None:
    selector = findings.text("replica.selector.class")
    why = f"no such selector here; set {RACK_AWARE}, or nothing for the leader alone"
    findings.require(not config.is_broker or selector in ("", RACK_AWARE), "replica.selector.class", why)


def check_queued_requests(findings: Findings) -> None:
    queued, request = findings.number("queued.max.request.bytes"), findings.number("socket.request.max.bytes")
    why = f"must hold one request of socket.request.max.bytes={request}, or be -1"
    findings.require(queued <= 0 or queued >= request, "queued.max.request.bytes", why)


def check_idle_connections(findings: Findings) -> None:
    idle_ms = findings.number("connections.max.idle.ms")
    delay_ms = findings.number("connection.failed.authentication.delay.ms")
    why = f"must be less than connections.max.idle.ms={idle_ms}"
    holds = idle_ms < 0 or delay_ms < idle_ms
    findings.require(holds, "connection.failed.authentication.delay.ms", why)


def check_rebalance_protocols(config: DaemonConfig, findings: Findings) -> None:
    key = "group.coordinator.rebalance.protocols"
    protocols = config.node_config.value(key)
    classic = isinstance(protocols, list) and "classic" in map(str.lower, protocols)
    findings.require(classic, key, "classic must be one of them")


def check_codec(key: str, findings: Findings) -> None:
    holds = findings.number(key) in range(len(CODEC_NAMES))
    findings.require(holds, key, "must be 0, or that of gzip (1), snappy (2), lz4 (3) or zstd (4)")


def check_share_assignors(config: DaemonConfig, findings: Findings) -> None:
    key = "group.share.assignors"
    names = config.node_config.value(key)
    holds = isinstance(names, list) and len(names) == 1 and names[0] in SHARE_ASSIGNORS
    findings.require(holds, key, "must be simple: share groups have this assignor alone")


def check_connections_per_ip(config: DaemonConfig, findings: Findings) -> None:
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        why = "no client could connect; 0 needs max.connections.per.ip.overrides"
        findings.refuse("max.connections.per.ip", why)


def check_listener_limits(config: DaemonConfig, settings: Settings, findings: Findings) -> None:
    """Set how many connections single listeners may have, and new ones a second, if that is of their own."""
    keys = {endpoint.listener: Keys(settings, findings, endpoint.listener) for endpoint in config.listeners}

    def own(key: str, everywhere: int) -> dict[str, int]:
        values = {listener: one.value(key) for listener, one in keys.items()}
        return {listener: value for listener, value in values.items() if value != everywhere}

    rate = config.max_connection_creation_rate
    config.connection_creation_rates = own("max.connection.creation.rate", rate)
    config.connections_by_listener = own("max.connections", config.max_connections)


def check_broker_session(config: DaemonConfig, findings: Findings) -> None:
    session_ms, heartbeat_ms = config.broker_session_timeout_ms, config.broker_heartbeat_interval_ms
    if heartbeat_ms * 2 > session_ms:
        findings.warnings.append(
            f"broker.session.timeout.ms={session_ms} is less than twice "
            f"broker.heartbeat.interval.ms={heartbeat_ms}: brokers may be fenced between two heartbeats"
        )


def check_metrics_listener(config: DaemonConfig, findings: Findings) -> None:
    """Check that the metrics listener shares its address with no other; a password needs a user, and should
    have TLS.
    """
    found = config.metrics_listener
    if bool(config.metrics_user) != bool(config.metrics_password):
        missing = "password" if config.metrics_user else "user"
        findings.refuse(f"kraftd.metrics.{missing}", "kraftd.metrics.user and .password are set together")
    elif config.metrics_password and found is not None and not found.security_protocol:
        findings.warnings.append(
            "kraftd.metrics.password is sent in plaintext: write kraftd.metrics.listener=https://host:port"
        )
    if found is not None and found.port:
        hosts = [found.host, *(one.host for one in config.listeners if one.port == found.port)]
        try:
            check_shared_port(found.port, hosts)
        except ValueError as error:
            findings.refuse("kraftd.metrics.listener", str(error))
