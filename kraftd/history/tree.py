"""The image as a tree with the paths of Kafka's metadata-shell, built on demand.

    /features  /cluster/brokers/1  /topics/byName/orders/0  /configs/TOPIC:orders/retention.ms

A node is a Directory or a Leaf. Nothing is built ahead: of a million partitions only the shown ones cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from kraftd.configdef.text import double_text
from kraftd.history.names import RESOURCE_TYPES, SCRAM_MECHANISMS, resource_type
from kraftd.history.values import (
    acl_fields,
    broker_fields,
    controller_fields,
    java_text,
    partition_fields,
)
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import METADATA_VERSION, version_name
from kraftd.metadata.state import QuotaEntity, TopicState
from kraftd.named_tuple import NamedTuple
from kraftd.redaction.configs import REDACTED, shown
from kraftd.types import parse_uuid, uuid_text

ROOT = "image"  # metadata-shell's name of the directory that holds all of this
_WILD = frozenset("*?[")


class Provenance(NamedTuple):
    """The record as of which a tree is; offset -1 is before the first."""

    offset: int
    epoch: int
    timestamp_ms: int


class Leaf(NamedTuple):
    """A value: as JSON, and as the text of metadata-shell."""

    value: Any
    text: str


class Directory(NamedTuple):
    """names returns the children in order; child makes the one of a name, None if there is none."""

    names: Callable[[], Iterable[str]]
    child: Callable[[str], Directory | Leaf | None]


Node = Directory | Leaf


def tree_of(image: Image, provenance: Provenance, *, show_secrets: bool = False) -> Directory:
    """The root of an image's tree, which always shows the image's current state."""
    return _fixed(
        {
            "provenance": lambda: Leaf(provenance._asdict(), _provenance_text(provenance)),
            "features": lambda: _features(image),
            "cluster": lambda: _cluster(image),
            "topics": lambda: _topics(image),
            "configs": lambda: _configs(image, show_secrets),
            "clientQuotas": lambda: _quotas(image),
            "producerIds": lambda: _fixed({"nextProducerId": lambda: _leaf(max(image.next_producer_id, -1))}),
            "acls": lambda: _fixed({"byId": lambda: _acls(image)}),
            "scram": lambda: _scram(image, show_secrets),
            "delegationToken": lambda: _tokens(image),
        }
    )


def find(root: Directory, path: str) -> Iterator[tuple[str, Node]]:
    """The nodes of a path with their full paths; `*`, `?` and `[...]` match names as in a shell.

    A leading `/image` may be left out. A name that holds a slash is found as well.
    """
    names = [name for name in path.split("/") if name]
    if names and names[0] == ROOT:
        del names[0]
    yield from _descend(root, "", names)


def _descend(node: Node, path: str, names: list[str]) -> Iterator[tuple[str, Node]]:
    if not names:
        yield path or "/", node
        return
    if isinstance(node, Leaf):
        return
    for length in range(1, len(names) + 1):
        name = "/".join(names[:length])
        child = node.child(name)
        if child is not None:
            yield from _descend(child, f"{path}/{name}", names[length:])
            return
    pattern = names[0]
    if _WILD.isdisjoint(pattern):
        return
    for name in node.names():
        if fnmatchcase(name, pattern):
            child = node.child(name)
            if child is not None:
                yield from _descend(child, f"{path}/{name}", names[1:])


def leaves(path: str, node: Node) -> Iterator[tuple[str, Leaf]]:
    """Every leaf at or below a node with its path."""
    if isinstance(node, Leaf):
        yield path, node
        return
    for name in node.names():
        child = node.child(name)
        if child is not None:
            yield from leaves(f"{path.rstrip('/')}/{name}", child)


# --- the directories ----------------------------------------------------------------------------------


def _leaf(value: Any) -> Leaf:
    return Leaf(value, str(value))


def _fixed(children: Mapping[str, Callable[[], Node]]) -> Directory:
    return Directory(lambda: children, lambda name: children[name]() if name in children else None)


def _provenance_text(provenance: Provenance) -> str:
    offset, epoch, timestamp_ms = provenance
    time = datetime.fromtimestamp(timestamp_ms / 1000, UTC) if 0 <= timestamp_ms < 1 << 47 else None
    text = "unknown" if time is None else time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"offset {offset}, epoch {epoch}, time {text}"


def _features(image: Image) -> Directory:
    def child(name: str) -> Node | None:
        if name == "metadataVersion":
            level = image.features.get(METADATA_VERSION)
            if level is None:
                return Leaf(None, "Optional.empty")
            return Leaf(version_name(level), f"Optional[{version_name(level)}]")
        feature = name.removeprefix("finalized_")
        return _leaf(image.features[feature]) if name != feature and feature in image.features else None

    return Directory(
        lambda: [
            "metadataVersion",
            *(f"finalized_{name}" for name in sorted(image.features) if name != METADATA_VERSION),
        ],
        child,
    )


def _cluster(image: Image) -> Directory:
    def broker(name: str) -> Node | None:
        found = image.brokers.get(_number(name))
        if found is None:
            return None
        fields = broker_fields(found)
        rack = "Optional.empty" if found.rack is None else f"Optional[{found.rack}]"
        return Leaf(fields, java_text("BrokerRegistration", {**fields, "rack": rack}))

    def controller(name: str) -> Node | None:
        found = image.controllers.get(_number(name))
        if found is None:
            return None
        fields = controller_fields(found)
        return Leaf(fields, java_text("ControllerRegistration", fields))

    return _fixed(
        {
            "brokers": lambda: Directory(lambda: map(str, sorted(image.brokers)), broker),
            "controllers": lambda: Directory(lambda: map(str, sorted(image.controllers)), controller),
        }
    )


def _topics(image: Image) -> Directory:
    def by_name(name: str) -> Node | None:
        topic = image.topic_named(name)
        return None if topic is None else _topic(topic)

    def by_id(name: str) -> Node | None:
        topic = image.topics.get(_uuid(name))
        return None if topic is None else _topic(topic)

    return _fixed(
        {
            "byName": lambda: Directory(lambda: sorted(image.topic_names()), by_name),
            "byId": lambda: Directory(lambda: map(uuid_text, sorted(image.topics)), by_id),
        }
    )


def _topic(topic: TopicState) -> Directory:
    def child(name: str) -> Node | None:
        if name == "name":
            return _leaf(topic.name)
        if name == "id":
            return _leaf(uuid_text(topic.id))
        partition = topic.partitions.get(_number(name))
        if partition is None:
            return None
        fields = partition_fields(partition)
        return Leaf(fields, java_text("PartitionRegistration", fields))

    return Directory(lambda: ["name", "id", *map(str, sorted(topic.partitions))], child)


def _configs(image: Image, show_secrets: bool) -> Directory:
    numbers = {name: number for number, name in RESOURCE_TYPES.items()}

    def resource(name: str) -> Node | None:
        kind, colon, owner = name.partition(":")
        number = numbers.get(kind, _number(kind))
        values = image.configs.get((number, owner))
        if values is None or bool(colon) is not bool(owner):
            return None

        def config(key: str) -> Node | None:
            return _leaf(shown(number, key, values[key], show_secrets)) if key in values else None

        return Directory(lambda: sorted(values), config)

    def names() -> list[str]:
        return [resource_type(kind) + (f":{owner}" if owner else "") for kind, owner in sorted(image.configs)]

    return Directory(names, resource)


_ENTITIES = {"client-id": "clientId", "ip": "ip", "user": "user"}


def quota_entity_name(entity: QuotaEntity) -> str:
    """`clientId(app)_user(alice)`, as metadata-shell names it; a default entity has empty parentheses."""
    return "_".join(f"{_ENTITIES.get(kind, kind)}({_escaped(name or '')})" for kind, name in sorted(entity))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _quotas(image: Image) -> Directory:
    def entity(name: str) -> Node | None:
        found = next((values for key, values in image.quotas.items() if quota_entity_name(key) == name), None)
        if found is None:
            return None

        def quota(key: str) -> Leaf | None:
            return Leaf(found[key], double_text(found[key])) if key in found else None

        return Directory(lambda: sorted(found), quota)

    return Directory(lambda: sorted(map(quota_entity_name, image.quotas)), entity)


def _acls(image: Image) -> Directory:
    def acl(name: str) -> Node | None:
        found = image.acls.get(_uuid(name))
        if found is None:
            return None
        fields = acl_fields(found)
        return Leaf(fields, java_text("StandardAcl", fields, "[]"))

    return Directory(lambda: map(uuid_text, sorted(image.acls)), acl)


def _scram(image: Image, show_secrets: bool) -> Directory:
    def mechanism(number: int) -> Callable[[], Node]:
        def user(name: str) -> Node | None:
            found = image.scram.get((number, name))
            if found is None:
                return None
            secrets = {"salt": found.salt, "storedKey": found.stored_key, "serverKey": found.server_key}
            fields: dict[str, Any] = {
                field: value.hex() if show_secrets else REDACTED for field, value in secrets.items()
            }
            fields["iterations"] = found.iterations
            return Leaf(fields, java_text("ScramCredentialData", fields))

        return lambda: Directory(lambda: sorted(name for kind, name in image.scram if kind == number), user)

    return _fixed({name: mechanism(number) for number, name in SCRAM_MECHANISMS.items()})


def _tokens(image: Image) -> Directory:
    def token(name: str) -> Node | None:
        found = image.delegation_tokens.get(name)
        if found is None:
            return None
        fields = {
            "owner": found.owner,
            "tokenRequester": found.requester,
            "renewers": list(found.renewers),
            "issueTimestamp": found.issue_timestamp_ms,
            "maxTimestamp": found.max_timestamp_ms,
            "expiryTimestamp": found.expiration_timestamp_ms,
        }
        return Leaf(fields, java_text("DelegationTokenData", fields))

    return Directory(lambda: sorted(image.delegation_tokens), token)


def _number(text: str) -> int:
    """The id in a name; -2, which no thing has, for a name that is no id."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 11 else -2


def _uuid(text: str) -> bytes:
    try:
        return parse_uuid(text)
    except ValueError:
        return b""
