"""Changes of resource configs: IncrementalAlterConfigs (44), AlterConfigs (33), and the configs of a new
topic.

Each resource is changed completely or not at all, with an answer of its own. Facts: KIP-339, KIP-226,
KIP-966, and the ConfigurationControlManager of Apache Kafka 4.3.1. Differs from it: an unknown operation, or
an APPEND or SUBTRACT of null, is INVALID_REQUEST for its resource. Kafka's controller fails the request and
gives up its leadership.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from kraftd.configdef.definition import broker_def, topic_def
from kraftd.configdef.text import split, utf16_length
from kraftd.controller.configs.cordoned import check_cordoned_log_dirs
from kraftd.controller.configs.dynamic import server_config
from kraftd.controller.configs.elr import check_min_insync_replicas, clear_elr_records
from kraftd.controller.configs.loggers import check_node_id
from kraftd.controller.configs.resources import MIN_INSYNC_REPLICAS, Operation, ResourceType
from kraftd.controller.configs.validation import invalid_config, invalid_request, validate_resource
from kraftd.controller.configs.values import known_configs, node_config
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.policies import ConfigChange
from kraftd.controller.record_limit import check_record_count
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages import alter_configs_request as legacy
from kraftd.messages import alter_configs_response as legacy_answer
from kraftd.messages import incremental_alter_configs_request as incremental
from kraftd.messages import incremental_alter_configs_response as incremental_answer
from kraftd.messages.config_record import ConfigRecord
from kraftd.named_tuple import NamedTuple
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

MAX_VALUE_LENGTH = 32767  # UTF-16 code units, and as many bytes of UTF-8 that a string field can hold

# Microseconds, for the pace: a resource, the change of a key, a name.
RESOURCE_US, CONFIG_US, NAME_US = 8, 4, 1
CHARS_PER_US = 32  # of a list that is changed

RequestedResource = TypeVar(
    "RequestedResource", incremental.AlterConfigsResource, legacy.AlterConfigsResource
)
Row = TypeVar("Row")
Config = TypeVar("Config", incremental.AlterableConfig, legacy.AlterableConfig)


class Resource(NamedTuple):
    type: int
    name: str


class Change(NamedTuple):
    """The new text of one key; None to delete it."""

    name: str
    value: str | None


@Sliced
def incremental_alter_configs(
    ctx: Context, request: incremental.IncrementalAlterConfigsRequest, *, forwarded: bool
) -> Slices[Decision[incremental_answer.IncrementalAlterConfigsResponse]]:
    """Set, delete, append to or subtract from single configs. ``forwarded``: a broker has checked the
    request.

    Raises Refusal(POLICY_VIOLATION) when it would write more records than one request may.
    """

    def changes_of(
        resource: Resource, latest: dict[str, incremental.AlterableConfig]
    ) -> Slices[list[Change]]:
        if resource.type == ResourceType.BROKER_LOGGER:
            change_log_levels(ctx, resource.name, latest.values(), validate_only=request.validate_only)
            return []
        current = known_configs(ctx, resource.type, resource.name)
        changes = []
        for name, config in latest.items():
            changes.append(Change(name, changed_value(resource, current.get(name), config)))
            if pace.spent(value_us(config.value)):
                yield
        return changes

    pace = Pace()
    row = incremental_answer.AlterConfigsResourceResponse
    records, rows = yield from alter(
        ctx, request.resources, changes_of, row, pace, forwarded, keep_others=True
    )
    answer = incremental_answer.IncrementalAlterConfigsResponse(responses=rows)
    return Decision(answer, [] if request.validate_only else records)


@Sliced
def alter_configs(
    ctx: Context, request: legacy.AlterConfigsRequest, *, forwarded: bool
) -> Slices[Decision[legacy_answer.AlterConfigsResponse]]:
    """Give each resource exactly the configs of the request; its other configs are deleted.

    Raises Refusal(POLICY_VIOLATION) when it would write more records than one request may.
    """

    def changes_of(resource: Resource, latest: dict[str, legacy.AlterableConfig]) -> Slices[list[Change]]:
        changes = []
        for name, config in latest.items():
            changes.append(Change(name, config.value))
            if pace.spent(NAME_US):
                yield
        return changes

    pace = Pace()
    row = legacy_answer.AlterConfigsResourceResponse
    records, rows = yield from alter(
        ctx, request.resources, changes_of, row, pace, forwarded, keep_others=False
    )
    answer = legacy_answer.AlterConfigsResponse(responses=rows)
    return Decision(answer, [] if request.validate_only else records)


def latest_configs(configs: Iterable[Config], pace: Pace) -> Slices[dict[str, Config]]:
    """The configs by name; of a name that is given twice the last counts.

    Raises Refusal(POLICY_VIOLATION) for more than 10,000 names.
    """
    latest: dict[str, Config] = {}
    for config in configs:
        latest[config.name] = config
        check_record_count(len(latest))
        if pace.spent(NAME_US):
            yield
    return latest


@Sliced
def new_topic_configs(
    ctx: Context, name: str, configs: Mapping[str, str], pace: Pace
) -> Slices[list[VersionedRecord]]:
    """The records that give a topic, which does not exist yet, these configs. Raises Refusal as Kafka
    refuses them.
    """
    if not configs:
        return []
    changes = [Change(*config) for config in configs.items()]
    resource = Resource(ResourceType.TOPIC, name)
    records = yield from resource_records(ctx, resource, changes, (), pace, forwarded=False)
    return records + clear_elr_records(ctx, records)


def alter(
    ctx: Context,
    requested_resources: Sequence[RequestedResource],
    changes_of: Callable[[Resource, dict[str, Any]], Slices[list[Change]]],
    row: Callable[[int, str | None, int, str], Row],
    pace: Pace,
    forwarded: bool,
    keep_others: bool,
) -> Slices[tuple[list[VersionedRecord], list[Row]]]:
    """Records and answers of a request's resources, in their order: none is named twice, but for loggers."""
    records: list[VersionedRecord] = []
    rows: list[Row] = []
    for requested in requested_resources:
        if pace.spent(RESOURCE_US):
            yield
        resource = Resource(requested.resource_type, requested.resource_name)
        latest = yield from latest_configs(requested.configs, pace)
        code, message = ErrorCode.NONE, None
        try:
            changes = yield from changes_of(resource, latest)
            if resource.type != ResourceType.BROKER_LOGGER:
                gone = () if keep_others else absent_keys(ctx, resource, changes)
                records += yield from resource_records(
                    ctx, resource, changes, gone, pace, forwarded=forwarded, must_exist=True
                )
        except Refusal as refusal:
            code, message = refusal.code, refusal.message
        rows.append(row(code, message, *resource))
        check_record_count(len(records))
    records += clear_elr_records(ctx, records)
    check_record_count(len(records))
    return records, rows


def value_us(value: str | None) -> int:
    """About how many microseconds a value takes, for the pace."""
    return CONFIG_US + (0 if value is None else len(value) // CHARS_PER_US)


def change_log_levels(
    ctx: Context, name: str, configs: Iterable[incremental.AlterableConfig], *, validate_only: bool
) -> None:
    """Change the log levels of the node of an id, which has to be this one. Raises Refusal."""
    check_node_id(name, ctx.settings.node_id)
    ctx.log_levels.change(configs, validate_only=validate_only)


def absent_keys(ctx: Context, resource: Resource, changes: Iterable[Change]) -> tuple[str, ...]:
    """The keys of the resource that the changes do not name."""
    named = {change.name for change in changes}
    return tuple(name for name in known_configs(ctx, resource.type, resource.name) if name not in named)


def changed_value(resource: Resource, current: str | None, config: incremental.AlterableConfig) -> str | None:
    """A config's text after an operation. Raises Refusal."""
    if config.config_operation == Operation.SET:
        return config.value
    if config.config_operation == Operation.DELETE:
        return None
    if config.config_operation not in (Operation.APPEND, Operation.SUBTRACT):
        raise invalid_request(f"There is no operation {config.config_operation} on a config.")
    operation = Operation(config.config_operation).name
    # Only the keys of topics and servers are known to be lists; of groups and client metrics Kafka's
    # schema has none.
    definition = {ResourceType.TOPIC: topic_def, ResourceType.BROKER: broker_def}.get(
        ResourceType(resource.type)
    )
    key = definition().get(config.name) if definition else None
    if key is None or key.type != "list":
        raise invalid_config(f"Cannot {operation} to {config.name}: it is not a list.")
    if config.value is None:
        raise invalid_request(f"{operation} to {config.name} needs a value.")
    if len(config.value) > MAX_VALUE_LENGTH:
        raise too_long(config.name)
    items = [item for item in split(key.default or "" if current is None else current, ",") if item]
    if operation == "APPEND":
        present = set(items)
        added = dict.fromkeys(split(config.value, ","))
        return ",".join([*items, *[item for item in added if item not in present]])
    taken = Counter(split(config.value, ","))
    left = []
    for item in items:
        if taken[item] > 0:
            taken[item] -= 1
        else:
            left.append(item)
    return ",".join(left)


def too_long(name: str) -> Refusal:
    """The refusal of a value that does not fit into a record."""
    return invalid_config(f"The value of {name} is longer than {MAX_VALUE_LENGTH} bytes.")


def resource_records(
    ctx: Context,
    resource: Resource,
    changes: Iterable[Change],
    gone: Iterable[str],
    pace: Pace,
    *,
    forwarded: bool,
    must_exist: bool = False,
) -> Slices[list[VersionedRecord]]:
    """The records of one resource's changes and deleted keys. Raises Refusal if Kafka would refuse them.

    A change to the current value writes nothing, except for a node, which then reads the files of its configs
    again.
    """
    current = known_configs(ctx, resource.type, resource.name)
    after = dict(current)
    effective = []
    for change in changes:
        if current.get(change.name) != change.value or resource.type == ResourceType.BROKER:
            effective.append(change)
        if pace.spent(NAME_US):
            yield
    removed = [Change(name, None) for name in gone]
    for name, value in (*effective, *removed):
        if resource.type == ResourceType.BROKER:
            if name == MIN_INSYNC_REPLICAS:
                check_min_insync_replicas(ctx, resource.name, value)
            check_cordoned_log_dirs(ctx, name, value, current, forwarded=forwarded)
        if value is None:
            after.pop(name, None)
        elif utf16_length(value) > MAX_VALUE_LENGTH or len(value.encode()) > MAX_VALUE_LENGTH:
            raise too_long(name)
        else:
            after[name] = value
        if pace.spent(CONFIG_US):
            yield
    validate_resource(resource.type, resource.name, after, current, server_config(ctx))
    if must_exist:
        check_existence(ctx, resource)
    if ctx.policies.alter_config is not None:
        requested = {change.name: change.value for change in effective}  # KAFKA-14195
        ctx.policies.check_configs(
            ConfigChange(resource_type=resource.type, resource_name=resource.name, configs=requested)
        )
    records = []
    for name, value in (*effective, *removed):
        records.append(VersionedRecord(ConfigRecord(resource.type, resource.name, name, value), 0))
        if pace.spent(NAME_US):
            yield
    return records


def check_existence(ctx: Context, resource: Resource) -> None:
    """Raise Refusal if a topic or node does not exist."""
    if resource.type == ResourceType.TOPIC:
        if ctx.image.topic_named(resource.name) is None:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {resource.name!r}.")
    elif resource.type == ResourceType.BROKER and resource.name:
        node_id = int(resource.name)
        known = node_id in ctx.image.brokers or node_id in ctx.image.controllers
        if not known and node_id not in node_config(ctx).voter_ids:
            raise Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, f"There is no node with id {node_id}.")
