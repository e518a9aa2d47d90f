"""Three days of a cluster, as Apache Kafka's controller decides them, with the states that its image classes
tell after each record.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kraftd.messages import alter_partition_reassignments_request as reassign
from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftd.metadata.image import Image
from tests.controller.oracle import ControllerOracle
from tests.spark.images import Row, kafka_images, state_of
from tests.spark.kafka_log import LEVEL, KafkaLog, registered
from tests.spark.logs import LogDirectory
from tests.spark.test_truth import committed, truth_of
from tests.spark.truth import Step

DAY_MS = 86_400_000
RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}
ASSIGNED = {
    "orders": ((1, 3), (3, 1), (2, 4), (4, 2)),
    "payments": ((1, 2, 3), (3, 4, 1)),
    "one-rack": ((1, 2), (2, 3), (2, 1)),
    "single": ((4,),),
}
READ, ALL, TOPIC, GROUP, DENY, ALLOW, LITERAL, PREFIXED = 3, 2, 2, 3, 2, 3, 3, 4


class Days(LogDirectory):
    """A log of several days."""

    skipped_ms = 0

    def timestamp_ms(self) -> int:
        return super().timestamp_ms() + self.skipped_ms


class History:
    """Three days of a cluster, and the states between its records by Kafka's classes."""

    def __init__(self, oracle: ControllerOracle, path: Path) -> None:
        self.directory = Days(path)
        self.log = KafkaLog(oracle, self.directory)
        self.acls: list[AccessControlEntryRecord] = []
        self._first_day()
        self.directory.skipped_ms += DAY_MS
        self._second_day()
        self.directory.skipped_ms += 2 * DAY_MS
        self.log.decide("fence 4", "broker fenced", 3)  # the only replica of `single` is on it
        self.log.decide("balance", "preferred election", 2)
        messages = [row[-1] for row in committed(path)]
        states = [state_of(image) for image in kafka_images(messages)]
        self.truth = truth_of(path, states=states)
        self.steps = self.truth.steps
        self.newest_ms = self.truth.newest_ms

    def _first_day(self) -> None:
        log = self.log
        log.write(FeatureLevelRecord("metadata.version", LEVEL))
        log.write(*(registered(broker, 10 + broker, rack) for broker, rack in RACKS.items()))
        topics = [
            CreatableTopic(name, -1, -1, [CreatableReplicaAssignment(*each) for each in enumerate(replicas)])
            for name, replicas in ASSIGNED.items()
        ]
        log.request("create_topics", CreateTopicsRequest(topics), 7)
        self._allow(READ, ALLOW, "User:app", "orders")
        self._allow(READ, ALLOW, "User:gone", "*")
        self._allow(ALL, ALLOW, "User:prefix", "ord", PREFIXED)
        self._allow(READ, DENY, "User:banned", "orders")
        self._allow(READ, ALLOW, "User:other", "payments")
        self._allow(READ, ALLOW, "User:other", "ord")
        self._allow(4, ALLOW, "User:writer", "orders")
        self._allow(READ, ALLOW, "User:group", "orders", resource=GROUP)
        log.write(ConfigRecord(TOPIC, "orders", "retention.ms", "1000"))
        log.decide("fence 3", "broker fenced", 2)
        self.incident = self.directory.end_offset
        log.write(ConfigRecord(TOPIC, "orders", "retention.ms", "2000"))
        log.decide("unfence 3")
        self._rejoin(3)

    def _second_day(self) -> None:
        log = self.log
        log.append([RemoveAccessControlEntryRecord(self.acls[1].id)])
        self._allow(READ, ALLOW, "User:late", "orders")
        log.write(ConfigRecord(TOPIC, "orders", "retention.ms", None))
        log.write(ConfigRecord(4, "", "min.insync.replicas", "2"))
        log.decide("shut_down 1", "controlled shutdown", 4)
        log.decide("fence 1")
        log.write(registered(1, 99, RACKS[1]))
        self._rejoin(1)
        moved = [reassign.ReassignablePartition(0, (2, 3)), reassign.ReassignablePartition(2, (4, 3))]
        topics = [reassign.ReassignableTopic("orders", moved)]
        log.request("reassign", reassign.AlterPartitionReassignmentsRequest(60_000, True, topics), 1)

    def _allow(
        self, operation: int, permission: int, principal: str, name: str, pattern: int = LITERAL,
        resource: int = TOPIC,
    ) -> None:  # fmt: skip
        acl = AccessControlEntryRecord(
            bytes([len(self.acls) + 1]) * 16, resource, name, pattern, principal, "*", operation, permission
        )
        self.acls.append(acl)
        self.log.append([acl])

    def _rejoin(self, broker: int) -> None:
        """A broker is in every ISR of its partitions again."""
        image = Image()
        for offset, row in enumerate(committed(self.directory.path)):
            image.apply(row[-1], offset, 1)
        self.log.write(
            *(
                PartitionChangeRecord(index, topic.id, isr=(*part.isr, broker))
                for topic in image.topics.values()
                for index, part in topic.partitions.items()
                if broker in part.replicas and broker not in part.isr
            )
        )

    def seconds(self, first: Step, end: Step | None) -> float:
        return ((self.newest_ms if end is None else end.timestamp_ms) - first.timestamp_ms) / 1000

    def lasting(self, key: Any, at: int, holds: Callable[[Row], object]) -> tuple[Step, Step | None]:
        """The steps at which something that holds at step number `at` began to hold, and ended."""

        def held(step: Step) -> bool:
            row = step.state["partitions"].get(key)
            return row is not None and bool(holds(row))

        first, end = at, at
        while held(self.steps[first - 1]):
            first -= 1
        while end < len(self.steps) and held(self.steps[end]):
            end += 1
        return self.steps[first], self.steps[end] if end < len(self.steps) else None
