"""The state as a tree with metadata-shell's paths, and the differences of two states."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.history.difference import differences
from kraftd.history.tree import Directory, Leaf, Provenance, find, leaves, tree_of
from kraftd.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.metadata.image import Image
from kraftd.types import uuid_text
from kraftd.wire.message import Message
from tests.metadata.histories import history, next_record, replayed

ORDERS = b"o" * 16
HERE = Provenance(41, 3, 1_700_000_000_123)
RECORDS: list[Message] = [
    FeatureLevelRecord("metadata.version", 30),
    TopicRecord("orders", ORDERS),
    PartitionRecord(0, ORDERS, (1, 2), (1,), (), (), 1, 0, 5, 9, (b"d" * 16, b"e" * 16)),
    ConfigRecord(2, "orders", "retention.ms", "500"),
    ConfigRecord(4, "", "ssl.key.password", "s3cret"),
    ConfigRecord(16, "a/b", "interval.ms", "100"),
    ClientQuotaRecord([EntityData("user", "a(b)"), EntityData("client-id", None)], "request_percentage", 5.0),
    UserScramCredentialRecord("alice", 1, b"salt", b"stored-key", b"server-key", 4096),
]


@pytest.fixture
def root() -> Directory:
    return tree_of(replayed(RECORDS), HERE)


def text(root: Directory, path: str) -> str:
    (found,) = find(root, path)
    assert isinstance(found[1], Leaf)
    return found[1].text


def names(root: Directory, path: str) -> list[str]:
    (found,) = find(root, path)
    assert isinstance(found[1], Directory)
    return list(found[1].names())


def test_the_directories_are_those_of_metadata_shell(root: Directory) -> None:
    assert names(root, "/") == [
        "provenance",
        "features",
        "cluster",
        "topics",
        "configs",
        "clientQuotas",
        "producerIds",
        "acls",
        "scram",
        "delegationToken",
    ]
    assert names(root, "topics") == ["byName", "byId"]
    assert names(root, "/image/topics/byId") == [uuid_text(ORDERS)]
    assert text(root, "/provenance") == "offset 41, epoch 3, time 2023-11-14T22:13:20.123Z"


def test_a_partition_is_printed_as_by_kafka(root: Directory) -> None:
    directories = f"{uuid_text(b'd' * 16)}, {uuid_text(b'e' * 16)}"
    assert text(root, "/topics/byName/orders/0") == (
        f"PartitionRegistration(replicas=[1, 2], directories=[{directories}], "
        "isr=[1], removingReplicas=[], addingReplicas=[], elr=[], lastKnownElr=[], leader=1, "
        "leaderRecoveryState=RECOVERED, leaderEpoch=5, partitionEpoch=9)"
    )


def test_names_with_slashes_and_parentheses_are_found(root: Directory) -> None:
    assert text(root, "configs/CLIENT_METRICS:a/b/interval.ms") == "100"
    assert names(root, "clientQuotas") == ["clientId()_user(a\\(b\\))"]
    assert text(root, "clientQuotas/clientId()_user(a\\(b\\))/request_percentage") == "5.0"


def test_secrets_are_redacted(root: Directory) -> None:
    assert text(root, "/configs/BROKER/ssl.key.password") == "[redacted]"
    everything = json.dumps([(path, leaf.value, leaf.text) for path, leaf in leaves("/", root)])
    for secret in ("s3cret", "stored-key", b"stored".hex()):
        assert secret not in everything


def test_wildcards_match_names(root: Directory) -> None:
    assert [path for path, _ in find(root, "/topics/by*/orders/[0-9]")] == ["/topics/byName/orders/0"]


@pytest.mark.parametrize(
    "path", ["/nothing", "/topics/byName/none", "/topics/byName/orders/x", "/provenance/x"]
)
def test_an_unknown_path_finds_nothing(root: Directory, path: str) -> None:
    assert list(find(root, path)) == []


def test_differences_are_additions_removals_and_changes() -> None:
    image = replayed(RECORDS)
    before = replayed(RECORDS)
    image.apply(PartitionChangeRecord(0, ORDERS, leader=2), 50, 1)
    image.apply(ConfigRecord(2, "orders", "retention.ms", None), 51, 1)
    image.apply(ConfigRecord(4, "", "ssl.key.password", "s3cret-2"), 52, 1)
    image.apply(TopicRecord("new", b"n" * 16), 53, 1)
    found = {one.path: (one.sign, one.before, one.after) for one in differences(before, image)}
    assert found == {
        "/topics/byName/new": ("+", None, {"id": uuid_text(b"n" * 16), "partitions": 0}),
        "/topics/byName/orders/0": (
            "~",
            {"leader": 1, "leaderEpoch": 5, "partitionEpoch": 9},
            {"leader": 2, "leaderEpoch": 6, "partitionEpoch": 10},
        ),
        "/configs/TOPIC:orders/retention.ms": ("-", "500", None),
        "/configs/BROKER/ssl.key.password": ("~", "[redacted]", "[redacted]"),
    }


def test_a_recreated_topic_is_a_removal_and_an_addition() -> None:
    image = replayed(RECORDS)
    before = replayed(RECORDS)
    image.apply(RemoveTopicRecord(ORDERS), 50, 1)
    image.apply(TopicRecord("orders", b"n" * 16), 51, 1)
    signs = [(one.sign, one.path) for one in differences(before, image)]
    assert signs[:2] == [("-", "/topics/byName/orders"), ("+", "/topics/byName/orders")]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 32), more=st.integers(0, 40))
def test_images_are_equal_if_and_only_if_nothing_differs(seed: int, more: int) -> None:
    records, random = history(seed, 100), Random(-seed - 1)
    image = replayed(records)
    before = replayed(records)
    assert list(differences(before, image)) == []
    for offset in range(more):
        image.apply(next_record(image, random), len(records) + offset, 1)
    found = list(differences(before, image))
    assert bool(found) is (before != image)
    assert len(list(differences(image, before))) == len(found)
    json.dumps(found)
    json.dumps([leaf.value for _, leaf in leaves("/", tree_of(image, HERE))])


def test_an_empty_image_has_a_tree() -> None:
    assert dict(leaves("/", tree_of(Image(), Provenance(-1, -1, -1))))["/provenance"].text == (
        "offset -1, epoch -1, time unknown"
    )
