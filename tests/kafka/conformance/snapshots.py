"""The final image: snapshots of the two controllers at one offset hold the same records."""

from __future__ import annotations

from functools import partial
from typing import Any

from kraftd.log.disk import RealDisk
from kraftd.messages import incremental_alter_configs_request as configs
from kraftd.metadata_dir.files.checkpoint import CheckpointReader, parse_checkpoint_name
from kraftd.types import OffsetAndEpoch
from kraftd.wire.record_frame import decode_record
from testkit.process import wait_until
from tests.kafka.conformance.player import Player
from tests.kafka.conformance.requests import admin
from tests.kafka.conformance.sides import SNAPSHOT_INTERVAL_MS, SecuredSide
from tests.kafka.differential.difference import difference

_TOPIC = 2  # a type of resource
_FEWEST = 5  # number of records: the features alone are more


def snapshot_difference(player: Player) -> str:
    """The differences between the newest snapshots of one offset, "" if there are none.

    Both controllers make one at the first record after the interval, so records are written until then.
    """
    sides = player.pair.sides
    past = player.pair.apache.next_offset
    common: list[OffsetAndEpoch] = []
    values = iter(range(1, 10_000))

    def both_have_a_new_snapshot() -> bool:
        change = configs.AlterableConfig("log.retention.ms", 0, str(next(values)))
        request = configs.IncrementalAlterConfigsRequest([configs.AlterConfigsResource(4, "", [change])])
        player.pair.play(admin(request))
        ids = [{one for one in _snapshots(side) if one.offset > past} for side in sides]
        common[:] = sorted(ids[0] & ids[1])
        return bool(common)

    interval_s = SNAPSHOT_INTERVAL_MS / 1000
    wait_until(both_have_a_new_snapshot, f"{player!r}: a snapshot of both", 60, poll_s=interval_s / 4)
    kafka, kraftd = (_view(side, common[-1]) for side in sides)
    assert len(kafka) > _FEWEST, f"{player!r}: {kafka} is hardly an image"
    return difference(kafka, kraftd)


def _snapshots(side: SecuredSide) -> list[OffsetAndEpoch]:
    """The complete snapshots: unfinished ones have another name."""
    found = map(parse_checkpoint_name, (path.name for path in side.metadata_dir.glob("*.checkpoint")))
    return [one for one in found if one is not None]


def _view(side: SecuredSide, snapshot_id: OffsetAndEpoch) -> list[Any]:
    """The records of a snapshot, sorted.

    Kafka's image keeps configs of deleted topics, which are left out: docs/divergence.md.
    """
    (path,) = (
        path
        for path in side.metadata_dir.glob("*.checkpoint")
        if parse_checkpoint_name(path.name) == snapshot_id
    )
    reader = CheckpointReader(RealDisk(), str(path))
    try:
        views = [side.record_view(*decode_record(value)) for batch in reader.values() for value in batch]
    finally:
        reader.close()
    topics = {fields["name"] for name, _, fields in views if name == "TopicRecord"}
    is_compared = partial(_is_of, topics)
    return sorted(filter(is_compared, views), key=repr)


def _is_of(topics: set[str], view: list[Any]) -> bool:
    name, _, fields = view
    is_of_a_deleted_topic = fields.get("resourceType") == _TOPIC and fields.get("resourceName") not in topics
    return not (name == "ConfigRecord" and is_of_a_deleted_topic)
