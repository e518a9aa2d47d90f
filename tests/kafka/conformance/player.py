"""Plays sequences on both controllers and compares them step by step: answers, records, and the state."""

from __future__ import annotations

from collections.abc import Iterator

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.describe_acls_request import DescribeAclsRequest
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kraftd.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kraftd.metadata.image import Image
from testkit.process import wait_until
from tests.kafka.conformance.departures import departures, left_in, start_of
from tests.kafka.conformance.level import level
from tests.kafka.conformance.requests import Steps, admin
from tests.kafka.conformance.seen import Seen
from tests.kafka.conformance.settling import ANY_ACL
from tests.kafka.conformance.sides import SecuredPair, Step
from tests.kafka.differential.difference import difference
from tests.kafka.differential.pair import LogPart

_VIEW_CHANCE = 0.3  # of comparing the state after a step that changed it


class Parted(AssertionError):
    """The logs of the two controllers differ."""


class Player:
    """A pair of controllers, and the image of each one's log."""

    def __init__(self, pair: SecuredPair) -> None:
        self.pair, self.seen = pair, Seen()
        self.images = [Image(), Image()]
        self._starts: list[int] = []
        self._found: list[str] = []
        wait_until(self._knows_the_start, f"{pair!r}: both logs have their first records")
        self.start = start_of(self.images[0], keeps_topics=pair.keeps_topics)

    def __repr__(self) -> str:
        return f"<Player of {self.pair!r}>"

    def play(self, seed: int, steps: int, *, tidy: bool = True) -> list[str]:
        """Play one sequence; with `tidy`, restore the state before it. Return the differences.

        Raises GaveUp if Kafka's controller gives up its leadership. If the logs differ, the sequence ends,
        and both sides are brought to the same state. If topics cannot be deleted, the pair is spent instead.
        """
        self._found = []
        try:
            self._play(seed, steps, tidy=tidy)
        except Parted as found:
            self._found.append(str(found))
            if self.start.keeps_topics:
                self.pair.is_spent = True
                return self._found
            level(self.pair, self.images, self.start)
        remains = left_in(self.images[0], self.start) if tidy else []
        if remains:
            self._found.append(f"seed {seed} left behind {remains}")
            level(self.pair, self.images, self.start)
        return self._found

    def _play(self, seed: int, steps: int, *, tidy: bool) -> None:
        self._starts = []
        rng = Steps(seed, self.images[0], self.pair.cluster_id)
        rng.begins_at = rng.log_end = self.pair.apache.next_offset
        for number, step in enumerate(self._steps(rng, steps, tidy=tidy)):
            changed = self._play_step(seed, number, step, rng)
            if changed and rng.odds(_VIEW_CHANCE):
                self._play_step(seed, number, rng.one(self._views(rng)), rng)
        for step in self._views(rng):
            self._play_step(seed, steps, step, rng)

    def _steps(self, rng: Steps, steps: int, *, tidy: bool) -> Iterator[Step]:
        yield from rng.arrivals()
        for _ in range(steps):
            yield rng.step()
        if tidy:
            yield from departures(rng.image, self.start, self.pair.cluster_id)

    def _views(self, rng: Steps) -> tuple[Step, ...]:
        """Requests whose answers show the state."""
        topics = [topic.name for topic in rng.image.topics.values()]
        resources = [
            *((2, name) for name in rng.some(topics, 2)),
            *((4, ""), (4, str(rng.broker()))),
            *((16, "metrics"), (32, "group")),
        ]
        described = [DescribeConfigsResource(*one, None) for one in dict.fromkeys(resources)]
        return (
            admin(DescribeAclsRequest(*ANY_ACL)),
            admin(DescribeConfigsRequest(described, True, False)),
            admin(ListPartitionReassignmentsRequest(30000, None)),
            admin(DescribeClusterRequest(False, 2, False)),
            admin(ApiVersionsRequest("conformance", "1")),
        )

    def _play_step(self, seed: int, number: int, step: Step, rng: Steps) -> bool:
        """Play a step on both. Return whether it changed the state."""
        (kafka, kraftd), parts = self.pair.play(step)
        self._read(parts)
        place = f"seed {seed} step {number}"
        if parts[0].batches != parts[1].batches:
            shown = difference(*(part.batches for part in parts)) + difference(kafka, kraftd)
            raise Parted(f"{place}: other records after {step}\n{shown}")
        rng.batch_starts = [rng.begins_at, *self._starts]
        rng.log_end = self.pair.apache.next_offset
        divergence = self.seen.note(step, kafka, kraftd)
        if kafka != kraftd and divergence is None:
            self._found.append(f"{place}: another answer to {step}\n{difference(kafka, kraftd)}")
        return bool(parts[0].records)

    def _knows_the_start(self) -> bool:
        """Read both logs. Return whether they have their first records and end at one offset."""
        self._read([side.read_log() for side in self.pair.sides])
        ends = {side.next_offset for side in self.pair.sides}
        return len(ends) == 1 and all(image.features for image in self.images)

    def _read(self, parts: list[LogPart]) -> None:
        for image, part in zip(self.images, parts, strict=True):
            for offset, epoch, message in part.records:
                image.apply(message, offset, epoch)
        self._starts += [base_offset for base_offset, _, _ in parts[0].batches]
