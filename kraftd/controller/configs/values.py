"""Effective configs of topics: the topic's own, else this node's, the cluster's, the file's, the default.

As in Kafka's KafkaConfigSchema, a server config of another name and unit may replace a topic config
(``log.retention.hours`` for ``retention.ms``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from kraftd.configdef import facts
from kraftd.configdef.definition import ConfigDef, ConfigKey, client_metrics_def, group_def, topic_def
from kraftd.configdef.node import NodeConfig
from kraftd.configdef.text import parse_integer, trim
from kraftd.controller.configs.resources import (
    CLUSTER,
    MIN_INSYNC_REPLICAS,
    UNCLEAN_LEADER_ELECTION,
    ConfigSource,
    ResourceType,
)
from kraftd.controller.context import Context
from kraftd.messages.create_topics_response import CreatableTopicConfigs

Items = tuple[tuple[str, str], ...]

DEFINITIONS: Mapping[int, Callable[[], ConfigDef]] = {
    ResourceType.TOPIC: topic_def,
    ResourceType.GROUP: group_def,
    ResourceType.CLIENT_METRICS: client_metrics_def,
}


def node_config(ctx: Context) -> NodeConfig:
    """The static configuration of this controller."""
    return NodeConfig.of(ctx.settings.static_config)


def known_configs(ctx: Context, resource_type: int, name: str) -> Mapping[str, str]:
    """The configs of a resource whose keys this software knows; a log may hold others, which have no effect.

    The keys of BROKER resources are open, and all of them are known.
    """
    configs = ctx.image.config(resource_type, name)
    definition = DEFINITIONS.get(resource_type)
    if definition is None or all(key in definition() for key in configs):
        return configs
    return {key: text for key, text in configs.items() if key in definition()}


def cluster_configs(ctx: Context) -> Mapping[str, str]:
    """Dynamic configs that hold for all nodes."""
    return ctx.image.config(ResourceType.BROKER, CLUSTER)


def node_configs(ctx: Context) -> Mapping[str, str]:
    """Dynamic configs of this controller alone."""
    return ctx.image.config(ResourceType.BROKER, str(ctx.settings.node_id))


def election_settings(ctx: Context, topic_name: str) -> tuple[int, bool]:
    """The topic's ``min.insync.replicas``, not yet limited to its number of replicas, and its
    ``unclean.leader.election.enable``: whether a replica out of sync may lead if there is no other.
    """
    own = items(ctx.image.config(ResourceType.TOPIC, topic_name))
    return _election_settings(node_config(ctx), items(node_configs(ctx)), items(cluster_configs(ctx)), own)


def effective_topic_configs(ctx: Context, configs: Mapping[str, str]) -> list[CreatableTopicConfigs]:
    """All configs of a topic that is created with these, by name, for the answer of CreateTopics (v5+,
    KIP-525).

    The list is made once for each distinct set of configs and shared, so it must not be changed.
    """
    return _effective(node_config(ctx), items(node_configs(ctx)), items(cluster_configs(ctx)), items(configs))


def items(configs: Mapping[str, str]) -> Items:
    return tuple(sorted(configs.items())) if configs else ()


@lru_cache(maxsize=256)
def _effective(static: NodeConfig, node: Items, cluster: Items, topic: Items) -> list[CreatableTopicConfigs]:
    own, of_node, of_cluster = dict(topic), dict(node), dict(cluster)
    answers = []
    for name, key in sorted(topic_def().items()):
        if key.internal and name not in own:
            continue
        value, source = resolve(key, own, of_node, of_cluster, static)
        answers.append(
            CreatableTopicConfigs(
                name=name,
                value=None if key.sensitive else value,
                config_source=source,
                is_sensitive=key.sensitive,
            )
        )
    return answers


@lru_cache(maxsize=256)
def _election_settings(static: NodeConfig, node: Items, cluster: Items, topic: Items) -> tuple[int, bool]:
    layers = dict(topic), dict(node), dict(cluster), static
    least, _ = resolve(topic_def()[MIN_INSYNC_REPLICAS], *layers)
    uncleanly, _ = resolve(topic_def()[UNCLEAN_LEADER_ELECTION], *layers)
    return int(least) if least else 1, uncleanly is not None and uncleanly.lower() == "true"


def resolve(
    key: ConfigKey,
    topic: Mapping[str, str],
    node: Mapping[str, str],
    cluster: Mapping[str, str],
    static: Mapping[str, str],
) -> tuple[str | None, ConfigSource]:
    """The text of a topic config and its source."""
    if key.name in topic:
        return topic[key.name], ConfigSource.TOPIC
    servers = facts.TOPIC_SYNONYMS.get(key.name, ())
    for layer, source in (
        (node, ConfigSource.DYNAMIC_BROKER),
        (cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (static, ConfigSource.STATIC_BROKER),
    ):
        if layer:
            for name, factor in servers:
                if name in layer:
                    return scaled(layer[name], factor), source
    return key.default, ConfigSource.DEFAULT


def scaled(text: str, factor: int) -> str:
    """A server config's text in the topic config's unit; text without a number counts as 0, as in Kafka."""
    if factor == 1:
        return text
    try:
        return str(parse_integer(trim(text), 32) * factor)
    except ValueError:
        return "0"
