"""What a broker checks of changed BROKER configs before it forwards them (KIP-226).

Controllers leave these checks to brokers. Facts: ConfigAdminManager and DynamicBrokerConfig of Apache Kafka
4.3.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kraftd.configdef.definition import InvalidValue, Value, broker_def
from kraftd.configdef.node import NodeConfig
from kraftd.configdef.text import parse_integer, parse_list, split, trim
from kraftd.controller.configs.changes import Resource, changed_value
from kraftd.controller.configs.dynamic import (
    dynamic_server_configs,
    is_dynamic,
    is_per_node,
    is_valid,
    overlaid,
    server_config,
)
from kraftd.controller.configs.resources import CORDONED_LOG_DIRS, Operation, ResourceType
from kraftd.controller.configs.validation import invalid_request, validate_resource_name
from kraftd.controller.configs.values import cluster_configs, node_config, node_configs
from kraftd.controller.context import Context

NETWORK_THREADS = "num.network.threads"  # also of single listeners
THREADS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    NETWORK_THREADS,
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
OF_ADDRESS = "max.connections.per.ip"
OVERRIDES = "max.connections.per.ip.overrides"
PROTOCOLS = "listener.security.protocol.map"
LISTENER_LIMITS = ("max.connections", "max.connection.creation.rate")
OPERATIONS = frozenset(map(int, Operation))
MAX_CONFIGS = 1_000  # checked at once
LEAST_DEDUPE_BUFFER_BYTES = 1024 * 1024  # a thread
FOLLOWS_RETENTION, UNLIMITED = -2, -1
OF_CLASSES = ("principal.builder.class", "ssl.engine.factory.class")  # also of single listeners
REPORTERS = "metric.reporters"
_HOST = re.compile(r"[0-9a-zA-Z\-%._:]*")
_PREFIX = re.compile(r"listener\.name\.[^.]*\.")


def check_broker_change(ctx: Context, name: str, configs: Sequence[Any], *, incremental: bool) -> None:
    """Raise Refusal unless this node, or the cluster if the name is empty, may have its configs changed so.

    `configs` are those of an AlterConfigs, or of an IncrementalAlterConfigs if `incremental`: no key is given
    twice, or set without a value. The refusal is
    INVALID_REQUEST, also for a value that does not parse; INVALID_CONFIG where a key that is no list is
    appended to.
    """
    if len(configs) > MAX_CONFIGS:
        raise invalid_request(f"At most {MAX_CONFIGS} keys of a broker can be changed at once.")
    if name:
        validate_resource_name(ResourceType.BROKER, name)
        if int(name) != ctx.settings.node_id:
            raise invalid_request(f"This is broker {ctx.settings.node_id}, not {name}.")
    after = after_change(ctx, name, configs, incremental=incremental)
    _check_keys(after, per_node=bool(name))
    static, cluster, node = node_config(ctx), cluster_configs(ctx), node_configs(ctx)
    if name:
        new = overlaid(static, dynamic_server_configs(cluster, per_node=False), after)
    else:
        new = overlaid(static, after, dynamic_server_configs(node, per_node=True))
    try:
        _check_values(new)
        _check_assignment_intervals(new)
        old = server_config(ctx)
        _check_addresses(old, new)
        _check_threads(old, new)
        _check_listener_limits(old, new)
        _check_listeners(old, new)
        _check_of_listeners(new, after)
        _check_classes(old, new, after)
        if CORDONED_LOG_DIRS in after:
            _check_cordoned(new)
    except InvalidValue as error:
        raise invalid_request(str(error)) from None


def after_change(ctx: Context, name: str, configs: Sequence[Any], *, incremental: bool) -> dict[str, str]:
    """The configs of a broker, or of the cluster, that take effect after a change. Raises Refusal."""
    if not incremental:
        return {one.name: one.value for one in configs}
    for config in configs:
        if config.config_operation not in OPERATIONS:
            raise invalid_request(f"There is no operation {config.config_operation} on a config.")
    known = ctx.image.config(ResourceType.BROKER, name)
    after = dynamic_server_configs(known, per_node=bool(name))
    for config in configs:
        value = changed_value(Resource(ResourceType.BROKER, name), after.pop(config.name, None), config)
        if value is not None:
            after[config.name] = value
    return after


def _check_keys(configs: Mapping[str, str], *, per_node: bool) -> None:
    for name, text in configs.items():
        if not is_dynamic(name):
            raise invalid_request(f"{name} cannot be changed while a broker runs: set it in its file.")
        if not is_valid(name, text):
            raise invalid_request(f"{text!r} is no value of {name}.")
        if not per_node and is_per_node(name):
            raise invalid_request(f"{name} can be set for single brokers only: name the broker.")


def _check_values(config: NodeConfig) -> None:
    """The values that depend on others. Raises Refusal, InvalidValue."""
    retention_ms = config.topic_defaults["retention.ms"]
    if retention_ms == 0:
        raise invalid_request("log.retention.ms must be -1 or at least 1.")
    for topic, name, least in (
        ("segment.ms", "log.roll.ms", 1),
        ("segment.jitter.ms", "log.roll.jitter.ms", 0),
    ):
        value = config.topic_defaults[topic]
        if isinstance(value, int) and value < least:
            raise invalid_request(f"{name} must be at least {least}, not {value}.")
    _check_local("ms", retention_ms, config)
    _check_local("bytes", config.value("log.retention.bytes"), config)
    buffer_bytes, threads = (
        config.integer("log.cleaner.dedupe.buffer.size"),
        config.integer("log.cleaner.threads"),
    )
    if threads > 0 and buffer_bytes // threads <= LEAST_DEDUPE_BUFFER_BYTES:
        raise invalid_request("log.cleaner.dedupe.buffer.size must be over 1 MiB a cleaner thread.")


def _check_local(unit: str, whole: Value, config: NodeConfig) -> None:
    name = f"log.local.retention.{unit}"
    local = config.integer(name)
    if not isinstance(whole, int) or whole < 0 or local == FOLLOWS_RETENTION:
        return
    if local == UNLIMITED or local > whole:
        raise invalid_request(f"{name} ({local}) must be at most the retention of the whole log ({whole}).")


def _check_assignment_intervals(config: NodeConfig) -> None:
    """The broker's least and greatest value hold for its own value as well. Raises Refusal, InvalidValue."""
    for kind in ("consumer", "share", "streams"):
        name = f"group.{kind}.assignment.interval.ms"
        least, greatest = (
            config.integer(f"group.{kind}.{bound}.assignment.interval.ms") for bound in ("min", "max")
        )
        if not least <= config.integer(name) <= greatest:
            raise invalid_request(f"{name} must be from {least} to {greatest}, not {config.integer(name)}.")


def _check_addresses(old: NodeConfig, new: NodeConfig) -> None:
    """The limits of connections from one address. Raises Refusal, InvalidValue."""
    text = new.get(OVERRIDES, "")
    if text != old.get(OVERRIDES, ""):
        for entry in split(",".join(parse_list(text)), ",") if trim(text) else ():
            host, colon, limit = map(trim, entry.rpartition(":"))
            if not (colon and _HOST.fullmatch(host) and _is_integer(limit)):
                raise invalid_request(f"{OVERRIDES} has {entry!r}: it must be address:number.")
    if not trim(text) and new.integer(OF_ADDRESS) == 0:
        raise invalid_request(f"{OF_ADDRESS} can be 0 only with {OVERRIDES}: no client could connect.")


def _is_integer(text: str) -> bool:
    try:
        parse_integer(text, 32)
    except ValueError:
        return False
    return True


def _check_listener_limits(old: NodeConfig, new: NodeConfig) -> None:
    """A listener's limit of connections, or of new ones a second, cannot become 0. Raises Refusal."""
    for prefix in _prefixes(new):
        for key in LISTENER_LIMITS:
            before, after = (_of_listener(config, prefix, key) for config in (old, new))
            if after != before and after <= 0:
                raise invalid_request(f"{prefix}{key} must be at least 1, not {after}.")


def _check_listeners(old: NodeConfig, new: NodeConfig) -> None:
    """No listener is added, removed, or given another security protocol while a broker runs. Raises
    Refusal.
    """
    names = _listeners(new)
    if set(names) != set(_listeners(old)):
        raise invalid_request("listeners are only added or removed in a broker's file.")
    if new.get(PROTOCOLS) == old.get(PROTOCOLS):
        return
    before, after = _protocols(old), _protocols(new)
    for name in (*names, *_texts(new, "controller.listener.names")):
        if after.get(name.upper()) != before.get(name.upper(), "PLAINTEXT"):
            raise invalid_request(f"{PROTOCOLS} must leave listener {name} its security protocol.")


def _check_of_listeners(new: NodeConfig, after: Mapping[str, str]) -> None:
    """What is said of a listener of this broker is a value of its key, whether it takes effect or not. Raises
    InvalidValue.
    """
    definition, prefixes = broker_def(), _prefixes(new)
    for name, text in after.items():
        for prefix in prefixes:
            if name.startswith(prefix):
                base = name.removeprefix(prefix)
                key = definition.get(base) or definition.get(base.partition(".")[2])  # behind a mechanism
                if key is not None:
                    key.parse(text)


def _check_classes(old: NodeConfig, new: NodeConfig, after: Mapping[str, str]) -> None:
    """kraftd has no Java classes that could take the place of its own. Raises Refusal, InvalidValue."""
    names = [name for name in after if _PREFIX.sub("", name, count=1) in OF_CLASSES]
    for name in (*names, *OF_CLASSES):
        key = broker_def()[_PREFIX.sub("", name, count=1)]
        if new.get(name) != old.get(name) and new.get(name, key.default) != key.default:
            raise invalid_request(f"{name} cannot be changed: kraftd has no other.")
    known = {*_texts(old, REPORTERS), *(parse_list(broker_def()[REPORTERS].default or ""))}
    if unknown := sorted(set(_texts(new, REPORTERS)) - known):
        raise invalid_request(f"{REPORTERS} cannot name {', '.join(unknown)}: kraftd runs no Java classes.")


def _check_cordoned(config: NodeConfig) -> None:
    """Directories that take no new replicas are this broker's, or all. Raises Refusal."""
    named, known = (
        {path.rstrip("/") for path in paths}
        for paths in (
            _texts(config, CORDONED_LOG_DIRS),
            _texts(config, "log.dirs") or _texts(config, "log.dir"),
        )
    )
    if named != {"*"} and (unknown := sorted(named - known)):
        raise invalid_request(
            f"{', '.join(unknown)} in {CORDONED_LOG_DIRS} is not in log.dirs of this broker."
        )


def _listeners(config: NodeConfig) -> list[str]:
    """The names of the listeners."""
    return [text.partition("://")[0] for text in _texts(config, "listeners")]


def _prefixes(config: NodeConfig) -> list[str]:
    """What the keys of the listeners to brokers and clients begin with."""
    controllers = {name.upper() for name in _texts(config, "controller.listener.names")}
    names = [name for name in _listeners(config) if name.upper() not in controllers]
    return [f"listener.name.{name.lower()}." for name in names]


def _protocols(config: NodeConfig) -> dict[str, str]:
    """Security protocols by listener, in capitals."""
    entries = parse_list(str(config.value(PROTOCOLS)))
    return {
        name.upper(): trim(protocol).upper() for name, _, protocol in (e.rpartition(":") for e in entries)
    }


def _texts(config: NodeConfig, key: str) -> list[str]:
    """A key's value that is a list. Raises InvalidValue."""
    value = config.value(key)
    return value if isinstance(value, list) else []


def _of_listener(config: NodeConfig, prefix: str, key: str) -> int:
    """A number of a listener: its own, else that of all. Raises InvalidValue."""
    own = config.get(prefix + key)
    return config.integer(key) if own is None else int(own)


def _check_threads(old: NodeConfig, new: NodeConfig) -> None:
    """A number of threads is at most halved or doubled at once. Raises Refusal, InvalidValue."""
    for name, before, after in _numbers_of_threads(old, new):
        if after == before:
            continue
        if after < 1 or after < before // 2 or after > before * 2:
            raise invalid_request(f"{name} cannot become {after}: from {before} it may be halved or doubled.")


def _numbers_of_threads(old: NodeConfig, new: NodeConfig) -> Iterator[tuple[str, int, int]]:
    """Each key with the number before and after."""
    for name in THREADS:
        yield name, old.integer(name), new.integer(name)
    for prefix in _prefixes(new):
        before, after = (_of_listener(config, prefix, NETWORK_THREADS) for config in (old, new))
        yield f"{prefix}{NETWORK_THREADS}", before, after
