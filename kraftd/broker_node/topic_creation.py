"""Topics that come into being because they are asked for: the internal ones, and others where the broker
allows it.
"""

from __future__ import annotations

from collections.abc import Callable

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.answers.to_controller import envelope_with
from kraftd.answers.topics import name_error
from kraftd.configdef.node import NodeConfig
from kraftd.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kraftd.messages.create_topics_response import CreateTopicsResponse
from kraftd.messages.envelope_response import EnvelopeResponse
from kraftd.requests.boundary import Boundary
from kraftd.requests.call import Call
from kraftd.requests.outbox import Outbox
from kraftd.types import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode, error_name
from kraftd.wire.frames import parse_response
from kraftd.wire.message import Message

INTERNAL_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC)
MOST_AT_ONCE = 1_000  # topics whose creation is under way
CREATE_TOPICS_VERSION = 7  # which every controller serves that brokers can register with
BY_CONTROLLER = -1  # the controller's own default

Ask = Callable[[Message, Callable[[Message | None], None]], None]


class TopicCreation:
    """`ask` asks the controller. failures: why internal topics could not be made, at the last try."""

    def __init__(self, static: NodeConfig, ask: Ask, outbox: Outbox, timeout_ms: int) -> None:
        self.is_automatic = bool(static.value("auto.create.topics.enable"))
        self._static = static
        self._ask = ask
        self._outbox = outbox
        self._timeout_ms = timeout_ms
        self._under_way: set[str] = set()
        self.failures: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<TopicCreation of {len(self._under_way)} topics>"

    def create_for(self, client: Call, name: str, boundary: Boundary) -> bool:
        """Have a topic created because a client asks for it, where brokers do that; return whether the client
        may.
        """
        if not self.is_automatic:
            return True
        may = boundary.allows_quietly(client, AclOperation.CREATE, AclResourceType.CLUSTER, CLUSTER_NAME)
        if not may and not boundary.allows(client, AclOperation.CREATE, AclResourceType.TOPIC, name):
            return False
        self.create(name, client)
        return True

    def create(self, name: str, client: Call | None = None) -> None:
        """Have a topic created, unless its creation is under way; for a client in the client's name, so
        that its quota of mutations counts (KIP-599).
        """
        is_invalid = name_error(name) is ErrorCode.INVALID_TOPIC_EXCEPTION
        if name in self._under_way or is_invalid or len(self._under_way) >= MOST_AT_ONCE:
            return
        self._under_way.add(name)
        request: Message = CreateTopicsRequest([self._topic(name)], self._timeout_ms)
        if client is not None:
            request = envelope_with(client, ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, request)

        def done(answer: Message | None) -> None:
            self._under_way.discard(name)
            why = _failure(answer)
            self.failures.pop(name, None)
            if why is not None:
                if name in INTERNAL_TOPICS:
                    self.failures[name] = f"{name} cannot be made: {why}"
                self._outbox.log("warning", "a topic could not be created", topic=name, error=why)

        self._ask(request, done)

    def _topic(self, name: str) -> CreatableTopic:
        integer = self._static.integer
        if name == TRANSACTIONS_TOPIC:
            return self._transactions_topic()
        if name == SHARE_STATE_TOPIC:
            return self._share_state_topic()
        if name != OFFSETS_TOPIC:
            return CreatableTopic(name, self._own("num.partitions"), self._own("default.replication.factor"))
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(integer("offsets.topic.segment.bytes")),
        }
        return CreatableTopic(
            name,
            integer("offsets.topic.num.partitions"),
            integer("offsets.topic.replication.factor"),
            configs=[CreatableTopicConfig(*one) for one in configs.items()],
        )

    def _own(self, key: str) -> int:
        """The broker's number, or the controller's if the broker's file does not set the key."""
        return self._static.integer(key) if key in self._static else BY_CONTROLLER

    def _transactions_topic(self) -> CreatableTopic:
        integer = self._static.integer
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(integer("transaction.state.log.min.isr")),
            "segment.bytes": str(integer("transaction.state.log.segment.bytes")),
            "unclean.leader.election.enable": "false",
        }
        return CreatableTopic(
            TRANSACTIONS_TOPIC,
            integer("transaction.state.log.num.partitions"),
            integer("transaction.state.log.replication.factor"),
            configs=[CreatableTopicConfig(*one) for one in configs.items()],
        )

    def _share_state_topic(self) -> CreatableTopic:
        integer = self._static.integer
        configs = {
            "cleanup.policy": "delete",  # the coordinator prunes it
            "compression.type": "producer",
            "min.insync.replicas": str(integer("share.coordinator.state.topic.min.isr")),
            "retention.ms": "-1",
            "segment.bytes": str(integer("share.coordinator.state.topic.segment.bytes")),
        }
        return CreatableTopic(
            SHARE_STATE_TOPIC,
            integer("share.coordinator.state.topic.num.partitions"),
            integer("share.coordinator.state.topic.replication.factor"),
            configs=[CreatableTopicConfig(*one) for one in configs.items()],
        )


def _failure(answer: Message | None) -> str | None:
    """Why the topic was not created, from the answer to CreateTopics or to the Envelope around it."""
    if isinstance(answer, EnvelopeResponse):
        if answer.error_code:
            return error_name(answer.error_code)
        data = bytes(answer.response_data or b"")
        answer = parse_response(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSION, data)[1]
    if not isinstance(answer, CreateTopicsResponse):
        return "no answer of the controller"
    row = answer.topics[0]
    if row.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        return None
    return row.error_message or error_name(row.error_code)
