"""DescribeConfigs (32): the values in force for a resource, and their sources (KIP-133, KIP-226, KIP-569).

A controller describes topics, itself, the cluster's dynamic configs, groups and client metrics subscriptions.
Facts: the ConfigHelper of Apache Kafka 4.3.1. Differs from it: documentation is always null, as kraftd
carries none of Kafka's prose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

from kraftd.configdef import facts
from kraftd.configdef.definition import (
    TYPE_IDS,
    ConfigKey,
    InvalidValue,
    Value,
    broker_def,
    client_metrics_def,
    group_def,
    topic_def,
    value_text,
)
from kraftd.configdef.node import NodeConfig, server_key, server_synonyms
from kraftd.configdef.text import parse_integer
from kraftd.controller.configs.dynamic import dynamic_server_configs, overlaid
from kraftd.controller.configs.loggers import ROOT
from kraftd.controller.configs.resources import CLUSTER, ConfigSource, ResourceType
from kraftd.controller.configs.validation import (
    cut,
    invalid_request,
    parse_all,
    server_group_values,
    validate_resource_name,
)
from kraftd.controller.configs.values import cluster_configs, known_configs, node_config, node_configs
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kraftd.wire.error_code import ErrorCode

RESOURCE_US, CONFIG_US = 12, 2  # microseconds, for the pace
KEYS_PER_PACE_CHECK, KEYS_US = 1_000, 100  # of the keys that a request names for one resource

Wanted = Set[str] | None  # the requested keys; None is all of them
Entry = tuple[str, str | None, ConfigKey | None, list[DescribeConfigsSynonym], bool]

DESCRIBED = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)


@Sliced
def describe_configs(
    ctx: Context, request: DescribeConfigsRequest
) -> Slices[Decision[DescribeConfigsResponse]]:
    """The configs of each requested resource; each is refused on its own.

    An unknown type of resource refuses the whole request: every resource is answered INVALID_REQUEST.
    """
    pace = Pace()
    for resource in request.resources:
        if pace.spent(1):
            yield
        if resource.resource_type not in DESCRIBED:
            return Decision((yield from _all_refused(request.resources, resource, pace)))
    server = Server(ctx)
    results = []
    for resource in request.resources:
        wanted: Wanted = None
        if resource.configuration_keys:
            wanted = yield from _wanted(server, resource.configuration_keys, pace)
        shown: list[DescribeConfigsResourceResult] = []
        try:
            if resource.resource_type == ResourceType.BROKER_LOGGER:
                shown += logger_rows(ctx, resource.resource_name, wanted)
            else:
                shown += [
                    answer(entry, request.include_synonyms)
                    for entry in DESCRIBERS[resource.resource_type](
                        ctx, server, resource.resource_name, wanted
                    )
                    if wanted is None or entry[0] in wanted
                ]
        except Refusal as refusal:
            results.append(result(resource, (), refusal.code, refusal.message))
        except InvalidValue as error:
            # A log written by other software may hold keys that cannot be set here.
            results.append(result(resource, (), ErrorCode.UNKNOWN_SERVER_ERROR, cut(str(error))))
        else:
            results.append(result(resource, shown, ErrorCode.NONE, ""))
        if pace.spent(RESOURCE_US + CONFIG_US * len(shown)):
            yield
    return Decision(DescribeConfigsResponse(results=results))


def _all_refused(
    resources: list[DescribeConfigsResource], unknown: DescribeConfigsResource, pace: Pace
) -> Slices[DescribeConfigsResponse]:
    """The refusal of every resource, because one of them is of an unknown type."""
    text = cut(f"Resources of type {unknown.resource_type} ({unknown.resource_name!r}) have no configs.")
    refused = []
    for resource in resources:
        refused.append(result(resource, (), ErrorCode.INVALID_REQUEST, text))
        if pace.spent(CONFIG_US):
            yield
    return DescribeConfigsResponse(results=refused)


def _wanted(server: Server, keys: Sequence[str], pace: Pace) -> Slices[Set[str]]:
    """The requested keys; of very many, those that there are."""
    if len(keys) <= KEYS_PER_PACE_CHECK:
        return frozenset(keys)
    known = server.known_keys()
    wanted: set[str] = set()
    for first in range(0, len(keys), KEYS_PER_PACE_CHECK):
        wanted |= known.intersection(keys[first : first + KEYS_PER_PACE_CHECK])
        if pace.spent(KEYS_US):
            yield
    return wanted


class Server:
    """This node's configs in their precedence: its dynamic ones, the cluster's, the file's, the defaults."""

    def __init__(self, ctx: Context) -> None:
        self.static = node_config(ctx)
        self.node = dynamic_server_configs(node_configs(ctx), per_node=True)
        self.cluster = dynamic_server_configs(cluster_configs(ctx), per_node=False)
        self.effective: NodeConfig = overlaid(self.static, self.cluster, self.node)
        self.topic_values: Mapping[str, Value] = {**topic_def().defaults(), **self.effective.topic_defaults}
        self._synonyms: dict[str, list[DescribeConfigsSynonym]] = {}

    def synonyms(self, name: str) -> list[DescribeConfigsSynonym]:
        """The possible values of a server config, the one in force first; shared, so not to be changed."""
        found = self._synonyms.get(name)
        if found is None:
            found = self._synonyms[name] = self._synonyms_of(name)
        return found

    def known_keys(self) -> frozenset[str]:
        """The keys of all resources here."""
        definitions = (topic_def(), group_def(), client_metrics_def(), broker_def())
        return frozenset((ROOT,)).union(*definitions, self.effective, self.cluster)

    def _synonyms_of(self, name: str) -> list[DescribeConfigsSynonym]:
        key = server_key(name)
        hidden = key is None or key.sensitive
        found = [
            DescribeConfigsSynonym(synonym, None if hidden else text, source)
            for layer, source in (
                (self.node.get, ConfigSource.DYNAMIC_BROKER),
                (self.cluster.get, ConfigSource.DYNAMIC_DEFAULT_BROKER),
                (self.static.get, ConfigSource.STATIC_BROKER),
                (default_text, ConfigSource.DEFAULT),
            )
            for synonym in server_synonyms(name)
            if (text := layer(synonym)) is not None
        ]
        # Values before that of the name itself belong to another name of it.
        while found and found[0].name != name:
            found.pop(0)
        return found


def default_text(name: str) -> str | None:
    key = broker_def().get(name)
    return None if key is None else value_text(broker_def().defaults().get(name))


def topic_entries(ctx: Context, server: Server, name: str, wanted: Wanted) -> Iterable[Entry]:
    if not name:
        # Kafka answers a change of it like a request without a resource, and a description like a topic with
        # an invalid name.
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, "A topic's name cannot be empty.")
    validate_resource_name(ResourceType.TOPIC, name)
    if ctx.image.topic_named(name) is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    own = known_configs(ctx, ResourceType.TOPIC, name)
    values = parse_all(topic_def(), own, server.topic_values) if own else server.topic_values
    for key in topic_def().values():
        if (not key.internal or key.name in own) and (wanted is None or key.name in wanted):
            servers = facts.TOPIC_SYNONYMS.get(key.name)
            inherited = server.synonyms(servers[0][0]) if servers else []
            yield own_entry(key, own, values, ConfigSource.TOPIC, inherited)


def group_entries(ctx: Context, server: Server, name: str, wanted: Wanted) -> Iterable[Entry]:
    if not name:
        raise invalid_request("A group's name is needed: groups have no default resource.")
    own = known_configs(ctx, ResourceType.GROUP, name)
    values = parse_all(group_def(), own, server_group_values(server.effective))
    for key in group_def().values():
        synonym = facts.GROUP_SYNONYMS.get(key.name)
        if synonym is not None:
            inherited = server.synonyms(synonym)
        elif key.default is None:
            inherited = []
        else:
            inherited = [DescribeConfigsSynonym(key.name, key.default, ConfigSource.DEFAULT)]
        yield own_entry(key, own, values, ConfigSource.GROUP, inherited)


def client_metrics_entries(ctx: Context, server: Server, name: str, wanted: Wanted) -> Iterable[Entry]:
    if not name:
        raise invalid_request("A subscription needs a name.")
    own = known_configs(ctx, ResourceType.CLIENT_METRICS, name)
    values = parse_all(client_metrics_def(), own)
    for key in client_metrics_def().values():
        yield own_entry(key, own, values, ConfigSource.CLIENT_METRICS, [])


def own_entry(
    key: ConfigKey,
    own: Mapping[str, str],
    values: Mapping[str, Value],
    source: ConfigSource,
    inherited: list[DescribeConfigsSynonym],
) -> Entry:
    """One config of a resource, its own or inherited."""
    text = None if key.sensitive else value_text(values[key.name])
    synonyms = [DescribeConfigsSynonym(key.name, text, source)] if key.name in own else []
    return key.name, text, key, synonyms + inherited, False


def broker_entries(ctx: Context, server: Server, name: str, wanted: Wanted) -> Iterable[Entry]:
    if name == CLUSTER:
        for key_name, text in server.cluster.items():
            synonyms = [
                synonym
                for synonym in server.synonyms(key_name)
                if synonym.source == ConfigSource.DYNAMIC_DEFAULT_BROKER
            ]
            yield server_entry(key_name, text, synonyms)
        return
    check_own_id(ctx, name)
    values = server.effective.typed
    for key_name, text in server.effective.items():
        known = broker_def().get(key_name)
        if known is None or known.internal:
            yield server_entry(key_name, text, server.synonyms(key_name))
    for key in broker_def().values():
        if not key.internal:
            yield server_entry(key.name, value_text(values.get(key.name)), server.synonyms(key.name))


def server_entry(name: str, text: str | None, synonyms: list[DescribeConfigsSynonym]) -> Entry:
    key = server_key(name)
    hidden = key is None or key.sensitive
    return name, None if hidden else text, key, synonyms, name not in facts.DYNAMIC


def logger_rows(ctx: Context, name: str, wanted: Wanted) -> list[DescribeConfigsResourceResult]:
    """The log levels of this node. Raises Refusal."""
    if not name:
        raise invalid_request("A node's id is needed: log levels have no default resource.")
    check_own_id(ctx, name)
    return [row for row in ctx.log_levels.rows() if wanted is None or row.name in wanted]


def check_own_id(ctx: Context, name: str) -> None:
    """Raise Refusal for another node: a controller describes only its own configs."""
    try:
        node_id = parse_integer(name, 32)
    except ValueError:
        raise invalid_request(f"A broker is named by its id, a whole number, not {name!r}.") from None
    if node_id != ctx.settings.node_id:
        own = ctx.settings.node_id
        raise invalid_request(f"This is node {own}: ask node {node_id} itself for its configs.")


DESCRIBERS: dict[int, Callable[[Context, Server, str, Wanted], Iterable[Entry]]] = {
    ResourceType.TOPIC: topic_entries,
    ResourceType.BROKER: broker_entries,
    ResourceType.CLIENT_METRICS: client_metrics_entries,
    ResourceType.GROUP: group_entries,
}


def answer(entry: Entry, include_synonyms: bool) -> DescribeConfigsResourceResult:
    name, text, key, synonyms, read_only = entry
    return DescribeConfigsResourceResult(
        name=name,
        value=text,
        read_only=read_only,
        config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        is_sensitive=key is None or key.sensitive,
        synonyms=synonyms if include_synonyms else [],
        config_type=0 if key is None else TYPE_IDS[key.type],
        documentation=None,
    )


def result(
    resource: DescribeConfigsResource,
    configs: Iterable[DescribeConfigsResourceResult],
    code: ErrorCode,
    message: str | None,
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=list(configs),
    )
