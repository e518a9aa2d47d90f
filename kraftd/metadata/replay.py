"""The function that replays each record, by the record's class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from kraftd.metadata import replay_access, replay_cluster, replay_topics
from kraftd.metadata.tables import Tables

REPLAY: dict[type, Callable[[Tables, Any], None]] = {
    RegisterBrokerRecord: replay_cluster.register_broker,
    UnregisterBrokerRecord: replay_cluster.unregister_broker,
    FenceBrokerRecord: replay_cluster.fence_broker,
    UnfenceBrokerRecord: replay_cluster.unfence_broker,
    BrokerRegistrationChangeRecord: replay_cluster.change_broker,
    RegisterControllerRecord: replay_cluster.register_controller,
    FeatureLevelRecord: replay_cluster.set_feature,
    ProducerIdsRecord: replay_cluster.set_producer_ids,
    NoOpRecord: replay_cluster.nothing,
    ZkMigrationStateRecord: replay_cluster.nothing,
    BeginTransactionRecord: replay_cluster.begin_transaction,
    EndTransactionRecord: replay_cluster.end_transaction,
    AbortTransactionRecord: replay_cluster.abort_transaction,
    TopicRecord: replay_topics.add_topic,
    RemoveTopicRecord: replay_topics.remove_topic,
    PartitionRecord: replay_topics.set_partition,
    PartitionChangeRecord: replay_topics.change_partition,
    ClearElrRecord: replay_topics.clear_elr,
    ConfigRecord: replay_access.set_config,
    ClientQuotaRecord: replay_access.set_quota,
    AccessControlEntryRecord: replay_access.add_acl,
    RemoveAccessControlEntryRecord: replay_access.remove_acl,
    UserScramCredentialRecord: replay_access.set_scram,
    RemoveUserScramCredentialRecord: replay_access.remove_scram,
    DelegationTokenRecord: replay_access.set_delegation_token,
    RemoveDelegationTokenRecord: replay_access.remove_delegation_token,
}
