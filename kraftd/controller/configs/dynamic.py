"""Dynamic configs of servers over the static ones of this node, as in Kafka's DynamicBrokerConfig (KIP-226).

A server ignores dynamic configs that cannot be set: keys that need a restart, base security keys without a
listener's prefix, single brokers' keys set for the cluster, and values that do not parse.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from kraftd.configdef import facts
from kraftd.configdef.definition import InvalidValue, broker_def, broker_quota_def
from kraftd.configdef.node import SYNONYM_GROUPS, NodeConfig
from kraftd.controller.configs.values import Items, cluster_configs, items, node_config, node_configs
from kraftd.controller.context import Context

_LISTENER_KEY = re.compile(r"listener\.name\.[^.]*\.(.*)")


def server_config(ctx: Context) -> NodeConfig:
    """The configs in force for this node: its file, overridden by the cluster's dynamic configs, then by its
    own.
    """
    node, cluster = node_configs(ctx), cluster_configs(ctx)
    static = node_config(ctx)
    return _overlaid(static, items(cluster), items(node)) if node or cluster else static


@lru_cache(maxsize=16)
def _overlaid(static: NodeConfig, cluster: Items, node: Items) -> NodeConfig:
    taken_cluster = dynamic_server_configs(dict(cluster), per_node=False)
    return overlaid(static, taken_cluster, dynamic_server_configs(dict(node), per_node=True))


def overlaid(static: NodeConfig, cluster: Mapping[str, str], node: Mapping[str, str]) -> NodeConfig:
    """The configs by precedence; a key also hides the other names of the same setting."""
    if not cluster and not node:
        return static
    texts = dict(static)
    for name, text in (*cluster.items(), *node.items()):
        for group in SYNONYM_GROUPS:
            if name in group:
                for synonym in group:
                    texts.pop(synonym, None)
        texts[name] = text
    return NodeConfig(texts)


def dynamic_server_configs(configs: Mapping[str, str], *, per_node: bool) -> dict[str, str]:
    """The dynamic configs that a server obeys; ``per_node``: they were set for this node, not for the
    cluster.
    """
    return {
        name: text
        for name, text in configs.items()
        if is_dynamic(name) and (per_node or not is_per_node(name)) and is_valid(name, text)
    }


def is_dynamic(name: str) -> bool:
    """Return whether a key takes effect without a restart. Names that Kafka does not define do: they may
    belong to plugins.
    """
    static_only = name in broker_def() and name not in facts.DYNAMIC
    return not static_only and name not in facts.DYNAMIC_SECURITY


def is_per_node(name: str) -> bool:
    """Return whether a key can be set for single nodes only."""
    match = _LISTENER_KEY.fullmatch(name)
    if match is None:
        return name in facts.DYNAMIC_PER_BROKER
    return match[1] not in facts.DYNAMIC_CLUSTER_LISTENER


def is_valid(name: str, text: str) -> bool:
    match = _LISTENER_KEY.fullmatch(name)
    base = match[1] if match else name
    key = broker_quota_def().get(base) or (broker_def().get(base) if base in facts.DYNAMIC else None)
    try:
        if key is not None:
            key.parse(text)
    except InvalidValue:
        return False
    return True
