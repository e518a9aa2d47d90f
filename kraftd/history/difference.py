"""The differences between two images of a cluster, thing by thing, with the paths of the tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kraftd.history.names import SCRAM_MECHANISMS, resource_type
from kraftd.history.tree import quota_entity_name
from kraftd.history.values import acl_fields, broker_fields, controller_fields, partition_fields
from kraftd.metadata.image import Image
from kraftd.named_tuple import NamedTuple
from kraftd.redaction.configs import shown
from kraftd.types import uuid_text


class Difference(NamedTuple):
    """One thing that is in one of two images only, or differs.

    before and after are None for an image without the thing; of a thing with fields they hold those that
    differ.
    """

    path: str
    before: Any
    after: Any

    @property
    def sign(self) -> str:
        return "+" if self.before is None else "-" if self.after is None else "~"


def differences(before: Image, after: Image, *, show_secrets: bool = False) -> Iterator[Difference]:
    """Every difference in the order of the tree; none for equal images. Credentials show no key."""
    for name, one, other in _sides(before.features, after.features):
        yield Difference(f"/features/finalized_{name}", one, other)
    yield from _objects("/cluster/brokers", before.brokers, after.brokers, broker_fields)
    yield from _objects("/cluster/controllers", before.controllers, after.controllers, controller_fields)
    yield from _topics(before, after)
    yield from _configs(before, after, show_secrets)
    for entity, quotas, others in _sides(before.quotas, after.quotas):
        for key, one, other in _sides(quotas or {}, others or {}):
            yield Difference(f"/clientQuotas/{quota_entity_name(entity)}/{key}", one, other)
    if before.next_producer_id != after.next_producer_id:
        yield Difference(
            "/producerIds/nextProducerId", _known(before.next_producer_id), _known(after.next_producer_id)
        )
    for acl_id, old, new in _sides(before.acls, after.acls):
        yield Difference(
            f"/acls/byId/{uuid_text(acl_id)}",
            None if old is None else acl_fields(old),
            None if new is None else acl_fields(new),
        )
    for (mechanism, user), credential, changed in _sides(before.scram, after.scram):
        path = f"/scram/{SCRAM_MECHANISMS.get(mechanism, mechanism)}/{user}"
        yield Difference(path, *(None if one is None else "a credential" for one in (credential, changed)))
    for token_id, token, renewed in _sides(before.delegation_tokens, after.delegation_tokens):
        yield Difference(
            f"/delegationToken/{token_id}",
            *(
                None if one is None else {"expiryTimestamp": one.expiration_timestamp_ms}
                for one in (token, renewed)
            ),
        )


def _known(producer_id: int) -> int | None:
    return None if producer_id < 0 else producer_id


def _sides(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Keys whose values differ, sorted, with both values; None for a missing key."""
    if before == after:
        return
    changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    for key in sorted(changed, key=_sortable):
        yield key, before.get(key), after.get(key)


def _sortable(key: Any) -> Any:
    """Quota entities hold None for a default, which does not compare with text."""
    if isinstance(key, tuple):
        return [(part is not None, _sortable(part) if part is not None else "") for part in key]
    return key


def _objects(
    folder: str, before: Mapping[Any, Any], after: Mapping[Any, Any], fields: Any
) -> Iterator[Difference]:
    for key, one, other in _sides(before, after):
        yield _of_fields(
            f"{folder}/{key}", None if one is None else fields(one), None if other is None else fields(other)
        )


def _of_fields(path: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Difference:
    if before is None or after is None:
        return Difference(path, before, after)
    names = [name for name in before if before[name] != after[name]]
    return Difference(path, {name: before[name] for name in names}, {name: after[name] for name in names})


def _topics(before: Image, after: Image) -> Iterator[Difference]:
    gone = [topic for topic_id, topic in before.topics.items() if topic_id not in after.topics]
    new = [topic for topic_id, topic in after.topics.items() if topic_id not in before.topics]
    changed = [
        topic
        for topic_id, topic in after.topics.items()
        if topic_id in before.topics and before.topics[topic_id].partitions != topic.partitions
    ]
    found = [(topic.name, 0, topic) for topic in gone]
    found += [(topic.name, 1, topic) for topic in new]
    found += [(topic.name, 2, topic) for topic in changed]
    for name, which, topic in sorted(found, key=lambda one: one[:2]):
        path = f"/topics/byName/{name}"
        if which == 2:
            yield from _objects(path, before.topics[topic.id].partitions, topic.partitions, partition_fields)
            continue
        about = {"id": uuid_text(topic.id), "partitions": len(topic.partitions)}
        yield Difference(path, about, None) if which == 0 else Difference(path, None, about)


def _configs(before: Image, after: Image, show_secrets: bool) -> Iterator[Difference]:
    for (kind, owner), values, others in _sides(before.configs, after.configs):
        path = f"/configs/{resource_type(kind)}" + (f":{owner}" if owner else "")
        for key, one, other in _sides(values or {}, others or {}):
            old, new = (shown(kind, key, value, show_secrets) for value in (one, other))
            yield Difference(f"{path}/{key}", old, new)
