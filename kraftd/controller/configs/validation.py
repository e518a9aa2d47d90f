"""Validation of a resource's configs, as in Kafka's ControllerConfigurationValidator.

Every check is of the whole set that the resource would have. Configs of BROKER resources are not checked: a
broker does so before it forwards them, and their names are open (listeners' own keys).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kraftd.configdef import facts
from kraftd.configdef.definition import (
    ConfigDef,
    InvalidValue,
    Value,
    broker_def,
    client_metrics_def,
    group_def,
    topic_def,
)
from kraftd.configdef.node import NodeConfig
from kraftd.configdef.text import parse_integer, split, trim
from kraftd.controller.configs.resources import ResourceType
from kraftd.controller.topics.names import topic_name_problem
from kraftd.ground.refusal import Refusal
from kraftd.wire.error_code import ErrorCode

REMOTE_STORAGE = "remote.storage.enable"
REMOTE_COPY_DISABLE = "remote.log.copy.disable"
REMOTE_DELETE_ON_DISABLE = "remote.log.delete.on.disable"
MAX_MESSAGE_LENGTH = 1000
DERIVED = -2  # local retention that follows the topic's retention

MATCH_PARAMETERS = frozenset(
    (
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    )
)

# By group config: the server configs of its least and greatest value, and whether only the group's own values
# are checked.
GROUP_LIMITS = (
    ("consumer.heartbeat.interval.ms", "group.consumer.{}.heartbeat.interval.ms", False),
    ("consumer.session.timeout.ms", "group.consumer.{}.session.timeout.ms", False),
    ("consumer.assignment.interval.ms", "group.consumer.{}.assignment.interval.ms", True),
    ("share.heartbeat.interval.ms", "group.share.{}.heartbeat.interval.ms", False),
    ("share.session.timeout.ms", "group.share.{}.session.timeout.ms", False),
    ("share.record.lock.duration.ms", "group.share.{}.record.lock.duration.ms", False),
    ("share.delivery.count.limit", "group.share.{}.delivery.count.limit", False),
    ("share.partition.max.record.locks", "group.share.{}.partition.max.record.locks", False),
    ("share.assignment.interval.ms", "group.share.{}.assignment.interval.ms", True),
    ("streams.heartbeat.interval.ms", "group.streams.{}.heartbeat.interval.ms", False),
    ("streams.session.timeout.ms", "group.streams.{}.session.timeout.ms", False),
    ("streams.num.standby.replicas", "group.streams.{}.standby.replicas", False),
    ("streams.assignment.interval.ms", "group.streams.{}.assignment.interval.ms", True),
)


def invalid_config(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_CONFIG, cut(message))


def invalid_request(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, cut(message))


def cut(message: str) -> str:
    """A message cut to fit into an answer, for it may repeat a long name or value."""
    return message if len(message) <= MAX_MESSAGE_LENGTH else f"{message[:MAX_MESSAGE_LENGTH]}…"


def validate_resource(
    resource_type: int,
    name: str,
    configs: Mapping[str, str],
    existing: Mapping[str, str],
    node: NodeConfig,
) -> None:
    """Raise Refusal unless the resource may have these configs; ``existing`` is what it has, ``node`` what
    the server has.
    """
    try:
        if resource_type == ResourceType.TOPIC:
            validate_resource_name(resource_type, name)
            validate_topic(configs, existing, node)
        elif resource_type == ResourceType.BROKER:
            validate_resource_name(resource_type, name)
        elif resource_type == ResourceType.CLIENT_METRICS:
            validate_client_metrics(name, configs)
        elif resource_type == ResourceType.GROUP:
            validate_group(name, configs, node)
        else:
            raise invalid_request(f"Resources of type {resource_type} have no configs here.")
    except InvalidValue as error:
        raise invalid_config(str(error)) from None


def validate_resource_name(resource_type: int, name: str) -> None:
    """Raise Refusal for an invalid name of a topic or node."""
    if resource_type == ResourceType.TOPIC:
        if not name:
            raise invalid_request("A topic's name is needed: topics have no default resource.")
        problem = topic_name_problem(name)
        if problem is not None:
            raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    elif name:
        try:
            node_id = parse_integer(name, 32)
        except ValueError:
            raise invalid_request(f"The name of a broker is its id, a whole number, not {name!r}.") from None
        if node_id < 0:
            raise invalid_request(f"A broker's id is not negative, as {name} is.")


def validate_topic(configs: Mapping[str, str], existing: Mapping[str, str], node: NodeConfig) -> None:
    """LogConfig.validate: names, values, and their combinations. Raises Refusal, InvalidValue."""
    for name in configs:
        if name not in topic_def():
            raise invalid_config(f"Unknown topic config name: {name}")
    values = topic_values(configs, node)
    low, high = number(values, "min.compaction.lag.ms"), number(values, "max.compaction.lag.ms")
    if low > high:
        raise invalid_config(f"min.compaction.lag.ms ({low}) is greater than max.compaction.lag.ms ({high}).")
    if values[REMOTE_STORAGE]:
        validate_tiered_topic(values, node)
    elif existing.get(REMOTE_STORAGE, "").lower() == "true" and not values[REMOTE_DELETE_ON_DISABLE]:
        raise invalid_config(
            f"{REMOTE_STORAGE}=false would leave data in the remote storage: to delete it, set "
            f"{REMOTE_DELETE_ON_DISABLE}=true as well; to keep it for reading, let {REMOTE_STORAGE} be "
            f"true and set {REMOTE_COPY_DISABLE}=true."
        )


def topic_values(configs: Mapping[str, str], node: NodeConfig) -> dict[str, Value]:
    """All values of a topic with these configs on a server with that configuration. Raises InvalidValue."""
    values = dict(topic_def().defaults())
    values.update(node.topic_defaults)
    for name, text in configs.items():
        values[name] = topic_def()[name].parse(text)
    return values


def validate_tiered_topic(values: Mapping[str, Value], node: NodeConfig) -> None:
    """The rules of a topic with remote storage (KIP-405, KIP-950). Raises Refusal."""
    if not node.value("remote.log.storage.system.enable"):
        raise invalid_config(
            f"{REMOTE_STORAGE}=true needs remote.log.storage.system.enable=true on the servers."
        )
    if values["cleanup.policy"] not in ([], ["delete"]):
        raise invalid_config(
            f"{REMOTE_STORAGE}=true needs cleanup.policy=delete, or an empty cleanup.policy."
        )
    for unit in ("bytes", "ms"):
        whole, local = number(values, f"retention.{unit}"), number(values, f"local.retention.{unit}")
        # Kafka tests the two limits for "unlimited" in two ways; a negative size is unlimited, a time only
        # at -1.
        limited = whole > -1 if unit == "bytes" else whole != -1
        if limited and local != DERIVED and (local == -1 or local > whole):
            raise invalid_config(
                f"local.retention.{unit} ({local}) must be limited, to at most retention.{unit} ({whole})."
            )
    if values[REMOTE_COPY_DISABLE]:
        for unit in ("bytes", "ms"):
            whole, local = number(values, f"retention.{unit}"), number(values, f"local.retention.{unit}")
            if local not in (DERIVED, whole):
                raise invalid_config(
                    f"With {REMOTE_COPY_DISABLE}=true nothing more goes to the remote storage: "
                    f"local.retention.{unit} ({local}) must be -2 or equal retention.{unit} ({whole})."
                )


def validate_client_metrics(name: str, configs: Mapping[str, str]) -> None:
    """A subscription to clients' metrics (KIP-714). Raises Refusal, InvalidValue."""
    if not name:
        raise invalid_request("A subscription needs a name.")
    for key in configs:
        if key not in client_metrics_def():
            raise invalid_request(f"Unknown client metrics configuration: {key}")
    values = parse_all(client_metrics_def(), configs)
    interval_ms = number(values, "interval.ms")
    if "interval.ms" in configs and not 100 <= interval_ms <= 3_600_000:
        raise invalid_request(f"interval.ms must be from 100 to 3600000 (an hour), not {interval_ms}.")
    patterns = values["match"]
    for pattern in patterns if isinstance(patterns, list) else ():
        parts = split(pattern, "=")
        if len(parts) != 2 or trim(parts[0]) not in MATCH_PARAMETERS or not is_java_pattern(trim(parts[1])):
            raise invalid_config(
                f"match={pattern}: must be <parameter>=<regular expression>, with a parameter of "
                f"{', '.join(sorted(MATCH_PARAMETERS))}."
            )


def is_java_pattern(text: str) -> bool:
    """Return whether Java would compile the regular expression, as far as Python's engine can tell."""
    # Replace Java's syntax that Python lacks by something of the same shape.
    text = re.sub(r"\\[pP](\{\^?\w+(=\w+)?\}|[A-Z])|\\[hHRvVXzG]", r"\\d", text)
    text = re.sub(r"\\Q(.*?)(\\E|\Z)", lambda match: re.escape(match[1]), text, flags=re.DOTALL)
    text = text.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def validate_group(name: str, configs: Mapping[str, str], node: NodeConfig) -> None:
    """GroupConfig.validate: a group's configs within the server's limits (KIP-848, KIP-932, KIP-1071)."""
    if not name:
        raise invalid_request("A group's name is needed: groups have no default resource.")
    for key in configs:
        if key not in group_def():
            raise invalid_config(f"Unknown group config name: {key}")
    values = parse_all(group_def(), configs, server_group_values(node))
    # The number of standby replicas alone has no least value on the server.
    for key, limit, only_own in GROUP_LIMITS:
        if only_own and key not in configs:
            continue
        value = number(values, key)
        least, greatest = limit.format("min"), limit.format("max")
        if least in broker_def() and value < node.integer(least):
            raise invalid_config(f"{key} ({value}) must be at least {least} ({node.integer(least)}).")
        if value > node.integer(greatest):
            raise invalid_config(f"{key} ({value}) must be at most {greatest} ({node.integer(greatest)}).")
    for kind in ("consumer", "share", "streams"):
        session_ms = number(values, f"{kind}.session.timeout.ms")
        heartbeat_ms = number(values, f"{kind}.heartbeat.interval.ms")
        if session_ms <= heartbeat_ms:
            raise invalid_config(
                f"{kind}.session.timeout.ms ({session_ms}) must be greater than "
                f"{kind}.heartbeat.interval.ms ({heartbeat_ms})."
            )


def server_group_values(node: NodeConfig) -> dict[str, Value]:
    """The group configs that follow from the server's configs."""
    return {group: node.value(server) for group, server in facts.GROUP_SYNONYMS.items()}


def parse_all(
    definition: ConfigDef, configs: Mapping[str, str], server: Mapping[str, Value] | None = None
) -> dict[str, Value]:
    """Every value of a definition: the resource's, the server's or the default. Raises InvalidValue."""
    values = {**definition.defaults(), **(server or {})}
    for name, text in configs.items():
        values[name] = definition[name].parse(text)
    return values


def number(values: Mapping[str, Value], name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value
