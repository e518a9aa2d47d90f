"""The share coordinator beside this broker's partitions of ``__share_group_state``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kraftd.broker_node.coordination.coordination import CoordinatingNode, Coordination
from kraftd.broker_node.coordination.known_topics import KnownTopics
from kraftd.ground.pace import Pace, Slices
from kraftd.groups.call import Call as CoordinatorCall
from kraftd.groups.effects import Respond
from kraftd.groups.events import TopicsDeleted
from kraftd.groups.share_state.config import ShareStateConfig
from kraftd.groups.share_state.coordinator import ShareCoordinator
from kraftd.groups.share_state.effects import PruneRecords
from kraftd.named_tuple import NamedTuple
from kraftd.partition.reading import DeletedRecords, delete_records
from kraftd.types import SHARE_STATE_TOPIC
from kraftd.wire.message import Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kraftd.metadata.image import Image
    from kraftd.requests.call import Call

SHARE_VERSION = "share.version"
PARTITION_US, BATCH_US = 40, 15  # to write of a share partition, and of a batch of its offsets


class _OwnCall(NamedTuple):
    """The token of a request of this broker; `then` gets the answer."""

    then: Callable[[Message], None]


class ShareCoordination(Coordination):
    """Drives the share coordinator."""

    topic = SHARE_STATE_TOPIC
    content = "share partitions"

    def __init__(self, node: CoordinatingNode, config: ShareStateConfig) -> None:
        self.coordinator = ShareCoordinator(config, KnownTopics(node.view, node.go_on))
        super().__init__(node, self.coordinator, config.share_coordinator_state_topic_compression_codec)
        self._performers |= {PruneRecords: self._prune}

    def handle(self, call: Call) -> Slices[None]:
        """Take a request of a broker, some partitions in each callback."""
        return self._perform_parts(self.new_call(call), call.message)

    def ask(self, request: Message, then: Callable[[Message], None]) -> None:
        """Take a request of this broker itself."""
        self.follow_image()
        own = _OwnCall(then)
        self._node.go_on(self._perform_parts(CoordinatorCall(own, 0), request))

    def _respond(self, effect: Respond) -> None:
        if isinstance(effect.token, _OwnCall):
            effect.token.then(effect.response)
        else:
            super()._respond(effect)

    def _perform_parts(self, call: CoordinatorCall, request: Message) -> Slices[None]:
        pace = Pace()
        for batch_count, part in self.coordinator.parts(call, request):
            part(self._node.wall_ms)
            if pace.spent(PARTITION_US + batch_count * BATCH_US):
                self.perform(self.coordinator.take_effects())
                yield
        self.perform(self.coordinator.take_effects())

    def image_changed(self, image: Image, levels: Mapping[str, int]) -> None:
        super().image_changed(image, levels)
        self.coordinator.is_enabled = levels.get(SHARE_VERSION, 0) >= 1

    def topics_deleted(self, topics: list[tuple[str, bytes]]) -> None:
        """Forget the share partitions of topics that are gone, by name and id."""
        if topics:
            self.step(TopicsDeleted({topic_id.hex(): topic_id for _, topic_id in topics}))

    def _prune(self, effect: PruneRecords) -> None:
        hosted = self._node.replicas.get(self.topic, effect.partition)
        if hosted is None or hosted.partition is None:
            return
        self._node.replicas.refresh_config(hosted)
        found = delete_records(hosted.partition, effect.offset)
        if isinstance(found, DeletedRecords):
            self._node.follow_up(hosted, list(found.effects))
        else:
            self._node.outbox.log(
                "warning",
                "share group state could not be pruned",
                partition=f"{self.topic}-{effect.partition}",
                error=found.name,
            )
