"""Turns records into events: the meaning of each record for the image before it, to which it is
then applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kraftd.history import access, cluster, partitions, topics
from kraftd.history.event import Event, Meaning
from kraftd.history.quorum import describe_control, voter_ids
from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.clear_elr_record import ClearElrRecord
from kraftd.messages.client_quota_record import ClientQuotaRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.delegation_token_record import DelegationTokenRecord
from kraftd.messages.end_transaction_record import EndTransactionRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.fence_broker_record import FenceBrokerRecord
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.producer_ids_record import ProducerIdsRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.register_controller_record import RegisterControllerRecord
from kraftd.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftd.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.messages.zk_migration_state_record import ZkMigrationStateRecord
from kraftd.metadata.image import Image
from kraftd.wire.message import Message

SENTENCES: dict[type, Callable[[Image, Any], Meaning]] = {
    RegisterBrokerRecord: cluster.broker_registered,
    UnregisterBrokerRecord: cluster.broker_unregistered,
    FenceBrokerRecord: cluster.broker_fenced,
    UnfenceBrokerRecord: cluster.broker_unfenced,
    BrokerRegistrationChangeRecord: cluster.broker_changed,
    RegisterControllerRecord: cluster.controller_registered,
    FeatureLevelRecord: cluster.feature_changed,
    ProducerIdsRecord: cluster.producer_ids_allocated,
    ZkMigrationStateRecord: cluster.zk_migration,
    BeginTransactionRecord: cluster.transaction_begun,
    EndTransactionRecord: cluster.transaction_ended,
    AbortTransactionRecord: cluster.transaction_aborted,
    RemoveTopicRecord: topics.topic_deleted,
    ClearElrRecord: topics.elr_cleared,
    PartitionRecord: partitions.partition_added,
    PartitionChangeRecord: partitions.partition_changed,
    ConfigRecord: access.config_changed,
    ClientQuotaRecord: access.quota_changed,
    AccessControlEntryRecord: access.acl_added,
    RemoveAccessControlEntryRecord: access.acl_removed,
    UserScramCredentialRecord: access.credential_set,
    RemoveUserScramCredentialRecord: access.credential_removed,
    DelegationTokenRecord: access.token_changed,
    RemoveDelegationTokenRecord: access.token_removed,
}


def sentence(image: Image, message: Message, show_secrets: bool = False) -> Meaning | None:
    """The meaning of a record for an image without it; None for a NoOp.

    A topic's creation is described without its partitions: `Story.describe` adds the records that follow.
    """
    if isinstance(message, NoOpRecord):
        return None
    if isinstance(message, TopicRecord):
        return topics.topic_created([message])
    if isinstance(message, ConfigRecord):
        return access.config_changed(image, message, show_secrets)
    return SENTENCES[type(message)](image, message)


class Story:
    """An image that follows the log, and the events on the way."""

    def __init__(self, image: Image | None = None, *, show_secrets: bool = False) -> None:
        self.image = image if image is not None else Image()
        self._show_secrets = show_secrets
        self._voters: frozenset[int] | None = None

    def __repr__(self) -> str:
        return f"<Story of {self.image!r}>"

    def describe(
        self, messages: Sequence[Message], offset: int, epoch: int, timestamp_ms: int
    ) -> Iterator[Event]:
        """The events of records with consecutive offsets from offset on, such as those of a batch.

        The image holds an event's records when the next event is requested. Raises ReplayError.
        """
        at = 0
        while at < len(messages):
            message = messages[at]
            length = 1
            if isinstance(message, TopicRecord):
                length = topics.creation_length(messages, at)
                meaning: Meaning | None = topics.topic_created(messages[at : at + length])
            else:
                meaning = sentence(self.image, message, self._show_secrets)
            if meaning is not None:
                yield Event(offset + at, epoch, timestamp_ms, meaning)
            self.image.apply_all(messages[at : at + length], offset + at, epoch)
            at += length

    def describe_control(self, message: Message, offset: int, epoch: int, timestamp_ms: int) -> Event | None:
        """The event of one control record; None for a snapshot's header and footer."""
        meaning = describe_control(message, epoch, self._voters)
        self._voters = voter_ids(message) or self._voters
        return None if meaning is None else Event(offset, epoch, timestamp_ms, meaning)
