"""Requests that remove what a sequence has left behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kraftd.messages import (
    alter_client_quotas_request,
    alter_user_scram_credentials_request,
    controller_registration_request,
    delete_acls_request,
    delete_topics_request,
    incremental_alter_configs_request,
    update_features_request,
)
from kraftd.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.metadata.features import supported_features
from kraftd.metadata.image import Image
from kraftd.metadata.state import ConfigResource
from kraftd.wire.message import Message
from testkit.cluster import CONTROLLER_ID
from tests.kafka.conformance.requests import admin, registration
from tests.kafka.conformance.settling import ANY_ACL, envelope
from tests.kafka.conformance.sides import Step, shared_hmac

_BROKER = 4  # a type of resource
_SET, _DELETE = 0, 1  # operations of IncrementalAlterConfigs
_UPGRADE, _SAFE_DOWNGRADE = 1, 2


class Start(NamedTuple):
    """The features, levels and configs of a newly formatted cluster.

    Where topics cannot be deleted, they stay as well.
    """

    features: Mapping[str, int]
    configs: Mapping[ConfigResource, Mapping[str, str]]
    keeps_topics: bool = False


def start_of(image: Image, *, keeps_topics: bool = False) -> Start:
    """The start that an image shows before any sequence has changed it."""
    return Start(dict(image.features), _configured(image), keeps_topics)


def _configured(image: Image) -> dict[ConfigResource, dict[str, str]]:
    return {resource: dict(configs) for resource, configs in image.configs.items() if configs}


def left_in(image: Image, start: Start) -> list[str]:
    """What an image holds besides the start, other controllers and producer ids."""
    remaining: dict[str, Any] = {
        "topics": {} if start.keeps_topics else image.topics,
        "brokers": image.brokers,
        "acls": image.acls,
        "quotas": image.quotas,
        "scram": image.scram,
        "tokens": image.delegation_tokens,
        "configs": {} if _configured(image) == start.configs else _configured(image),
        "features": {} if image.features == start.features else image.features,
    }
    return [f"{name}: {dict(each)}" for name, each in remaining.items() if each]


def departures(image: Image, start: Start, cluster_id: str) -> Iterator[Step]:
    """Steps that remove everything but the start; the caller keeps the image current."""
    for broker_id in _gone_with_configs(image):
        yield admin(registration(broker_id, cluster_id))
    if image.features != start.features:
        yield from _controllers(image)
    if image.topics and not start.keeps_topics:
        states = [delete_topics_request.DeleteTopicState(None, topic_id) for topic_id in image.topics]
        yield admin(delete_topics_request.DeleteTopicsRequest(states, (), 30000))
    if _configured(image) != start.configs:  # a broker's configs can be deleted only while it is registered
        yield admin(_configs(_configured(image), start.configs))
    for broker_id in list(image.brokers):
        yield admin(UnregisterBrokerRequest(broker_id))
    if image.features != start.features:
        yield admin(_features(image, start.features))
    if image.acls:
        yield admin(delete_acls_request.DeleteAclsRequest([delete_acls_request.DeleteAclsFilter(*ANY_ACL)]))
    if _configured(image) != start.configs:
        yield admin(_configs(_configured(image), start.configs))
    if image.quotas:
        yield admin(_quotas(image))
    for _ in (256, 512):  # a request may name a user only once
        if image.scram:
            yield admin(_scram(image))
    for token_id, token in list(image.delegation_tokens.items()):
        expire = ExpireDelegationTokenRequest(shared_hmac(int(token_id.rpartition("-")[2])), -1)
        yield admin(envelope(token.owner.partition(":")[2], expire))


def _gone_with_configs(image: Image) -> list[int]:
    """Unregistered brokers that still have configs: only a registered broker's configs can be deleted."""
    named = [int(name) for type, name in _configured(image) if type == _BROKER and name]
    return [one for one in named if one not in image.brokers and one not in image.controllers]


def _controllers(image: Image) -> Iterator[Step]:
    """Let other controllers register again with support for all levels."""
    m = controller_registration_request
    features = [m.Feature(name, *span) for name, span in supported_features().items()]
    listeners = [m.Listener("CONTROLLER", "localhost", 9999, 0)]
    for controller_id in [one for one in image.controllers if one != CONTROLLER_ID]:
        yield admin(m.ControllerRegistrationRequest(controller_id, bytes(16), False, listeners, features))


def _features(image: Image, levels: Mapping[str, int]) -> Message:
    m = update_features_request
    updates = []
    for name in {**image.features, **levels}:
        now, then = image.features.get(name, 0), levels.get(name, 0)
        if now != then:
            kind = _UPGRADE if now < then else _SAFE_DOWNGRADE
            updates.append(m.FeatureUpdateKey(name, then, False, kind))
    return m.UpdateFeaturesRequest(30000, updates, False)


def _configs(
    now: Mapping[ConfigResource, Mapping[str, str]], then: Mapping[ConfigResource, Mapping[str, str]]
) -> Message:
    m = incremental_alter_configs_request
    resources = []
    for resource in {**now, **then}:
        was, should = now.get(resource, {}), then.get(resource, {})
        changes = [
            m.AlterableConfig(name, _SET if name in should else _DELETE, should.get(name))
            for name in {**was, **should}
            if was.get(name) != should.get(name)
        ]
        resources.append(m.AlterConfigsResource(*resource, changes))
    return m.IncrementalAlterConfigsRequest(resources)


def _quotas(image: Image) -> Message:
    m = alter_client_quotas_request
    return m.AlterClientQuotasRequest(
        [
            m.EntryData([m.EntityData(*pair) for pair in entity], [m.OpData(key, 0.0, True) for key in keys])
            for entity, keys in image.quotas.items()
        ]
    )


def _scram(image: Image) -> Message:
    m = alter_user_scram_credentials_request
    by_user = {user: mechanism for mechanism, user in image.scram}
    deletions = [m.ScramCredentialDeletion(user, mechanism) for user, mechanism in by_user.items()]
    return m.AlterUserScramCredentialsRequest(deletions, [])
