"""Rows of coordinators' partitions: their records, each with a sentence.

They are those of ``__consumer_offsets``, ``__transaction_state`` and ``__share_group_state``. A partition is
recognized by the name of its directory, `__transaction_state-7`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any

from kraftd.groups.records import (
    CoordinatorRecord,
    UnknownRecordType,
    UnreadableRecord,
    decode_record,
    decode_share_record,
    decode_transaction_record,
)
from kraftd.groups.transactions.states import BY_NUMBER, EMPTY
from kraftd.messages.group_metadata_value import GroupMetadataValue
from kraftd.messages.offset_commit_key import OffsetCommitKey
from kraftd.messages.offset_commit_value import OffsetCommitValue
from kraftd.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
)
from kraftd.messages.share_snapshot_key import ShareSnapshotKey
from kraftd.messages.share_snapshot_value import ShareSnapshotValue
from kraftd.messages.share_update_key import ShareUpdateKey
from kraftd.messages.share_update_value import ShareUpdateValue
from kraftd.messages.transaction_log_key import TransactionLogKey
from kraftd.messages.transaction_log_value import TransactionLogValue
from kraftd.types import time_text, uuid_text
from kraftd.wire.batch import Batch, RecordView, records
from kraftd.wire.records import NO_PRODUCER_ID

Fields = dict[str, Any]
Decode = Callable[[RecordView], CoordinatorRecord]

_MARKER = Struct(">hh")  # version and type of a control record's key
_COORDINATOR_EPOCH = Struct(">i")
_DELIVERY_STATES = {0: "available", 2: "acknowledged", 4: "archived"}  # then: after so many deliveries
_ENDS = {0: "ABORT", 1: "COMMIT"}
_MEMBER_STATES = {0: "stable", 1: "to give up partitions", 2: "waiting for others' partitions"}
_ALWAYS_SHOWN = ("assigned_partitions", "topic_partitions")
_NAMING = (
    "topic_name",
    "name",
    "supported_protocols",
    "subtopology_id",
)  # fields that stand for their struct
NONE_YET_MS = 0


def decoder_of(path: str) -> Decode | None:
    """How the records of a segment are decoded; None unless it is of a coordinator's partition."""
    name, _, index = os.path.basename(os.path.dirname(os.path.abspath(path))).rpartition("-")
    return _DECODERS.get(name) if index.isdecimal() else None


def record_fields(decode: Decode, batch: Batch) -> Iterator[Fields]:
    """What each record says. `unreadable` is why one cannot be decoded. Raises CorruptBatch."""
    for view in records(batch):
        fields: Fields = {"offset": view.offset, "timestamp_ms": view.timestamp_ms}
        if batch.header.is_control:
            yield {**fields, **marker_fields(batch, view)}
            continue
        try:
            record = decode(view)
        except UnknownRecordType as error:
            yield {
                **fields,
                "type": f"UNKNOWN({error})",
                "version": -1,
                "key": None,
                "value": None,
                "text": "-",
            }
        except UnreadableRecord as error:
            yield {"offset": view.offset, "unreadable": str(error)}
        else:
            yield {
                **fields,
                "type": type(record.key).__name__.removesuffix("Key"),
                "version": record.version,
                "key": record.key,
                "value": record.value,
                "text": sentence(record, batch.header.producer_id),
            }


def sentence(record: CoordinatorRecord, producer_id: int = NO_PRODUCER_ID) -> str:
    """What a record says in words. `producer_id`: of the transaction that it is a part of, if it is."""
    key, value = record.key, record.value
    if isinstance(key, TransactionLogKey):
        assert value is None or isinstance(value, TransactionLogValue)
        return _transaction(key.transactional_id, value)
    if isinstance(key, OffsetCommitKey):
        assert value is None or isinstance(value, OffsetCommitValue)
        return _offset(key, value, producer_id)
    if isinstance(key, ShareSnapshotKey | ShareUpdateKey):
        assert value is None or isinstance(value, ShareSnapshotValue | ShareUpdateValue)
        return _share_partition(key, value)
    group, *rest = (str(getattr(key, name)) for name in _names(key))
    about = " ".join((f"group {group}", *rest))
    kind = _words(type(key).__name__.removesuffix("Key"))
    if value is None:
        return f"{about}: no {kind} any more"
    if isinstance(value, GroupMetadataValue):
        return _classic_group(about, value)
    if isinstance(value, ShareGroupStatePartitionMetadataValue):
        return f"{about}: share state of {_share_topics(value)}"
    said = [
        f"{_words(name)} {shown}" for name in _names(value) if (shown := _shown(name, getattr(value, name)))
    ]
    return f"{about}: {', '.join((kind, *said))}"


def _shown(name: str, field: Any) -> str:
    """A field of a record of the newer groups; nothing for what is not set."""
    if name == "state" and field in _MEMBER_STATES:
        return _MEMBER_STATES[field]
    if name.endswith("timestamp"):
        return time_text(field) if field > NONE_YET_MS else ""
    if isinstance(field, list | tuple):
        return "; ".join(map(_item, field)) or ("none" if name in _ALWAYS_SHOWN else "")
    if field is None:
        return ""
    return field if isinstance(field, str) else _item(field)


def _item(one: Any) -> str:
    """An entry of a list: a name, or some partitions of a topic."""
    id = getattr(one, "topic_id", None)
    if id is not None and hasattr(one, "partitions"):
        return f"{', '.join(map(str, one.partitions))} of {uuid_text(id)}"
    for field in _NAMING:
        if (named := getattr(one, field, None)) is not None:
            return named if isinstance(named, str) else ", ".join(map(_item, named))
    return str(one)


def _transaction(id: str, value: TransactionLogValue | None) -> str:
    if value is None:
        return f"{id}: has expired"
    state = BY_NUMBER.get(value.transaction_status)
    producer = f"producer {value.producer_id} of epoch {value.producer_epoch}"
    text = f"{id}: {value.transaction_status if state is None else state.text}, {producer}"
    if state is not EMPTY and value.transaction_start_timestamp_ms > NONE_YET_MS:
        text += f", begun {time_text(value.transaction_start_timestamp_ms)}"
    places = [
        f"{row.topic}-{index}" for row in value.transaction_partitions or () for index in row.partition_ids
    ]
    text += f", in {', '.join(places)}" if places else ""
    if value.next_producer_id >= 0:
        text += f", next producer {value.next_producer_id}"
    return text


def _offset(key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int) -> str:
    about = f"group {key.group}: {key.topic}-{key.partition}"
    if value is None:
        return f"{about} has no offset any more"
    epoch = f" (leader epoch {value.leader_epoch})" if value.leader_epoch >= 0 else ""
    pending = f", pending in a transaction of producer {producer_id}" if producer_id >= 0 else ""
    return f"{about} at {value.offset}{epoch}, committed {time_text(value.commit_timestamp)}{pending}"


def _classic_group(about: str, value: GroupMetadataValue) -> str:
    members = ", ".join(f"{one.client_id} at {one.client_host}" for one in value.members)
    if not members:
        return f"{about}: classic, generation {value.generation}, without members"
    protocol = f"protocol {value.protocol}"
    return f"{about}: classic, generation {value.generation}, {protocol}, members {members}"


def _share_partition(
    key: ShareSnapshotKey | ShareUpdateKey, value: ShareSnapshotValue | ShareUpdateValue | None
) -> str:
    about = f"group {key.group_id}: partition {key.partition} of topic {uuid_text(key.topic_id)}"
    if value is None:
        return f"{about} has no share state any more"
    if isinstance(value, ShareSnapshotValue):
        epochs = f"epoch {value.state_epoch}, leader epoch {value.leader_epoch}"
    else:
        epochs = f"leader epoch {value.leader_epoch}"
    text = f"{about}, {epochs}"
    text += f", done before {value.start_offset}" if value.start_offset >= 0 else ""
    batches = (
        f"{one.first_offset} to {one.last_offset}"
        f" {_DELIVERY_STATES.get(one.delivery_state, 'in a state unknown here')} after {one.delivery_count}"
        for one in value.state_batches
    )
    return "; ".join((text, *batches))


def _share_topics(value: ShareGroupStatePartitionMetadataValue) -> str:
    """The partitions that the share coordinator is to begin, those that it has begun, topics to forget."""

    def places(topics: list[TopicPartitionsInfo]) -> str:
        return ", ".join(f"{topic.topic_name}-{index}" for topic in topics for index in topic.partitions)

    parts = {
        "to begin": places(value.initializing_topics),
        "begun": places(value.initialized_topics),
        "to be forgotten": ", ".join(topic.topic_name for topic in value.deleting_topics),
    }
    return "; ".join(f"{names} {what}" for what, names in parts.items() if names) or "nothing"


def marker_fields(batch: Batch, view: RecordView) -> Fields:
    """A control record: the end of a transaction."""
    kind = _MARKER.unpack_from(view.key)[1] if view.key is not None and len(view.key) >= 4 else -1
    name = _ENDS.get(kind)
    epoch = None
    if view.value is not None and len(view.value) >= 6:
        epoch = _COORDINATOR_EPOCH.unpack_from(view.value, 2)[0]
    producer = f"producer {batch.header.producer_id} of epoch {batch.header.producer_epoch}"
    done = {"COMMIT": "commits", "ABORT": "aborts"}.get(name or "", "writes a control record")
    return {
        "type": name or f"UNKNOWN({kind})",
        "version": 0,
        "key": None,
        "value": None,
        "text": f"{producer} {done}, by coordinator epoch {epoch}",
    }


def _names(message: Any) -> list[str]:
    return [name for name in message.__struct_fields__ if name != "unknown_tags"]


def _words(name: str) -> str:
    """`ConsumerGroupMetadata` and `member_epoch` as words."""
    return "".join(f" {one.lower()}" if one.isupper() else one for one in name).strip().replace("_", " ")


def _group_record(view: RecordView) -> CoordinatorRecord:
    return decode_record(view.key, view.value)[1]


def _share_record(view: RecordView) -> CoordinatorRecord:
    return decode_share_record(view.key, view.value)


def _transaction_record(view: RecordView) -> CoordinatorRecord:
    return decode_transaction_record(view.key, view.value)


_DECODERS: dict[str, Decode] = {
    "__consumer_offsets": _group_record,
    "__transaction_state": _transaction_record,
    "__share_group_state": _share_record,
}
