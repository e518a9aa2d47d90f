"""CreateTopics: names, configs and replicas of new topics, all in one batch (KIP-464, KIP-525)."""

from __future__ import annotations

from kraftd.controller.configs.changes import NAME_US, new_topic_configs
from kraftd.controller.configs.values import effective_topic_configs
from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.policies import NewTopic
from kraftd.controller.quotas.mutation import UNLIMITED, Charge
from kraftd.controller.record_limit import MAX_PARTITIONS_PER_REQUEST, check_record_count
from kraftd.controller.time_left import check_time_left
from kraftd.controller.topics.assignment import NewPartitions, Replicas, assigned_isr, check_assignment
from kraftd.controller.topics.names import NameTest, any_name, may_collide, topic_name_problem
from kraftd.controller.topics.placement import Racks, rounds
from kraftd.controller.topics.work import (
    ASSIGNED_US,
    COUNTED_US,
    PARTITION_US,
    PARTITIONS_PER_PACE_CHECK,
    PLACED_US,
    TOPIC_US,
)
from kraftd.ground.pace import Pace, Sliced, Slices
from kraftd.ground.refusal import Refusal
from kraftd.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kraftd.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.types import ONE_UUID, ZERO_UUID
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord

MAX_NAMED_CONFIGS = 1_000  # in the text of a refusal, which is cut
_DEFAULT = -1  # of the number of partitions and the replication factor (KIP-464)


@Sliced
def create_topics(
    ctx: Context,
    request: CreateTopicsRequest,
    version: int,
    *,
    describable: NameTest = any_name,
    charge: Charge = UNLIMITED,
) -> Slices[Decision[CreateTopicsResponse]]:
    """The valid topics, with configs and partitions, in one batch; per topic its error.

    The request names no topic twice. With validate_only the answer is the same and the charge counts, but
    there are no records. describable says of a name whether the sender may see its configs. Raises Refusal:
    REQUEST_TIMED_OUT, POLICY_VIOLATION for more than 10,000 partitions or records in a request.
    """
    answer = CreateTopicsResponse(topics=[])
    if request.topics:
        check_time_left(request.timeout_ms)
    creation = _Creation(ctx, describable, charge)
    yield from _check_partition_count(request.topics, ctx.settings.num_partitions, creation.pace)
    for topic in request.topics:
        if creation.pace.spent(TOPIC_US):
            yield
        try:
            answer.topics.append((yield from creation.create(topic)))
        except Refusal as refusal:
            answer.topics.append(
                CreatableTopicResult(topic.name, error_code=refusal.code, error_message=refusal.message)
            )
        check_record_count(len(creation.records))
    answer.throttle_time_ms = charge.throttle_ms
    records = [] if request.validate_only else creation.records
    return Decision(answer, records, after=charge.commit)


def _check_partition_count(
    topics: list[CreatableTopic], default_partition_count: int, pace: Pace
) -> Slices[None]:
    """Raise Refusal(POLICY_VIOLATION) for more than 10,000 partitions."""
    total = 0
    for topic in topics:
        if pace.spent(COUNTED_US):
            yield
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == _DEFAULT:
            total += default_partition_count
        else:
            total += max(topic.num_partitions, 0)
    if total > MAX_PARTITIONS_PER_REQUEST:
        raise Refusal(
            ErrorCode.POLICY_VIOLATION,
            f"The request asks for {total} partitions, the most at once is {MAX_PARTITIONS_PER_REQUEST}.",
        )


class _Creation:
    """One request's creation of topics: what its topics share, and the records so far."""

    __slots__ = ("_charge", "_ctx", "_describable", "_image", "_new_partitions", "_racks", "pace", "records")

    def __init__(self, ctx: Context, describable: NameTest, charge: Charge) -> None:
        self._charge = charge
        self._ctx = ctx
        self._image = ctx.image
        self._describable = describable
        self._racks: Racks | None = None
        self._new_partitions = NewPartitions(ctx.image)
        self.records: list[VersionedRecord] = []
        self.pace = Pace()

    def create(self, topic: CreatableTopic) -> Slices[CreatableTopicResult]:
        """The answer for one topic, its records added.  Raises Refusal for this topic, nothing added."""
        name = topic.name
        _check_new_name(self._image, name)
        configs: dict[str, str] = {}
        config_records: list[VersionedRecord] = []
        if topic.configs:
            configs = yield from self._configs(topic.configs)
            config_records = yield from new_topic_configs.begin(self._ctx, name, configs, self.pace)
        if topic.assignments:
            partitions = yield from self._assigned(topic)
            replicas = {index: replicas for index, (replicas, _) in enumerate(partitions)}
            self._ctx.policies.check_topic(NewTopic(name=name, assignments=replicas, configs=configs))
        else:
            partitions = yield from self._placed(topic)
            factor = len(partitions[0][0])
            shape = NewTopic(
                name=name, num_partitions=len(partitions), replication_factor=factor, configs=configs
            )
            self._ctx.policies.check_topic(shape)
        self._charge.take(len(partitions))
        topic_id = _new_topic_id(self._ctx)
        records = self.records
        records.append(VersionedRecord(TopicRecord(name, topic_id), 0))
        records += config_records
        for first in range(0, len(partitions), PARTITIONS_PER_PACE_CHECK):
            some = partitions[first : first + PARTITIONS_PER_PACE_CHECK]
            records += self._new_partitions.records(topic_id, first, some)
            if self.pace.spent(PARTITION_US * len(some)):
                yield
        if not self._describable(name):
            return CreatableTopicResult(
                name, topic_id, ErrorCode.NONE, None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
        return CreatableTopicResult(
            name,
            topic_id,
            ErrorCode.NONE,
            None,
            ErrorCode.NONE,
            len(partitions),
            len(partitions[0][0]),
            effective_topic_configs(self._ctx, configs),
        )

    def _configs(self, requested: list[CreatableTopicConfig]) -> Slices[dict[str, str]]:
        """The configs by name. Raises Refusal(INVALID_CONFIG) for those without a value."""
        configs: dict[str, str] = {}
        without_value: list[str] = []
        for config in requested:
            if self.pace.spent(NAME_US):
                yield
            if config.value is not None:
                configs[config.name] = config.value
                check_record_count(len(configs))
            elif len(without_value) < MAX_NAMED_CONFIGS:
                without_value.append(config.name)
        if without_value:
            raise Refusal(
                ErrorCode.INVALID_CONFIG, f"These topic configs have no value: {','.join(without_value)}"
            )
        return configs

    def _assigned(self, topic: CreatableTopic) -> Slices[list[tuple[Replicas, Replicas]]]:
        """Replicas and ISR of each partition from the request."""
        if topic.replication_factor != _DEFAULT:
            raise Refusal(
                ErrorCode.INVALID_REQUEST, "With replicas assigned, the replication factor has to be -1."
            )
        if topic.num_partitions != _DEFAULT:
            raise Refusal(
                ErrorCode.INVALID_REQUEST, "With replicas assigned, the number of partitions has to be -1."
            )
        partitions: dict[int, tuple[Replicas, Replicas]] = {}
        replication_factor = None
        for assignment in topic.assignments:
            if self.pace.spent(ASSIGNED_US):
                yield
            index, replicas = assignment.partition_index, assignment.broker_ids
            if index in partitions:
                raise Refusal(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Replicas of partition {index} are assigned twice."
                )
            check_assignment(self._image, replicas, replication_factor)
            replication_factor = len(replicas)
            partitions[index] = (replicas, assigned_isr(self._image, index, replicas))
        if any(index not in partitions for index in range(len(partitions))):
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Partitions have to be numbered from 0 on without a gap.",
            )
        return [partitions[index] for index in range(len(partitions))]

    def _placed(self, topic: CreatableTopic) -> Slices[list[tuple[Replicas, Replicas]]]:
        """Replicas and ISR of each partition from the placer."""
        settings = self._ctx.settings
        replication_factor = topic.replication_factor
        if replication_factor < _DEFAULT or replication_factor == 0:
            raise Refusal(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "The replication factor has to be greater than 0, or -1 for the default.",
            )
        count = topic.num_partitions
        if count < _DEFAULT or count == 0:
            raise Refusal(
                ErrorCode.INVALID_PARTITIONS,
                "The number of partitions has to be greater than 0, or -1 for the default.",
            )
        if replication_factor == _DEFAULT:
            replication_factor = settings.default_replication_factor
        if count == _DEFAULT:
            count = settings.num_partitions
        if self._racks is None:
            self._racks = Racks(self._image.brokers.values())
        try:
            placed: list[tuple[Replicas, Replicas]] = []
            for some in rounds(self._racks, self._ctx.rng, count, replication_factor):
                placed += self._new_partitions.placed(some)
                if self.pace.spent(PLACED_US * len(some)):
                    yield
            return placed
        except Refusal as refusal:
            raise Refusal(
                refusal.code,
                f"Unable to replicate the partition {replication_factor} time(s): {refusal.message}.",
            ) from None


def _check_new_name(image: Image, name: str) -> None:
    """Raises Refusal: INVALID_TOPIC_EXCEPTION or TOPIC_ALREADY_EXISTS."""
    problem = topic_name_problem(name)
    if problem is not None:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if image.topic_named(name) is not None:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if may_collide(name):
        colliding = image.colliding_topic(name)
        if colliding is not None:
            raise Refusal(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with topic '{colliding}': metrics show '.' as '_'.",
            )


def _new_topic_id(ctx: Context) -> bytes:
    """An unused topic id that is not reserved and whose text does not begin with a dash."""
    while True:
        topic_id = ctx.rng.uuid()
        dash_first = topic_id[0] >> 2 == 62
        if topic_id not in (ZERO_UUID, ONE_UUID) and not dash_first and ctx.image.topic(topic_id) is None:
            return topic_id
