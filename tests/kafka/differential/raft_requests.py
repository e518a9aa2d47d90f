"""Random requests of the raft APIs for a state of the quorum that the caller keeps current.

Some of them are valid, most are wrong in one or two places.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from kraftd.messages import (
    add_raft_voter_request,
    begin_quorum_epoch_request,
    describe_quorum_request,
    end_quorum_epoch_request,
    fetch_request,
    fetch_snapshot_request,
    update_features_request,
    update_raft_voter_request,
    vote_request,
)
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraftd.raft.quorum.voters import Listeners
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch
from kraftd.wire.api import valid_versions
from kraftd.wire.codec import encode_bytes
from kraftd.wire.errors import EncodeError
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from tests.kafka.differential.pair import CLUSTER_ID
from tests.kafka.differential.quorum import SNAPSHOT, VOTERS, View

T = TypeVar("T")
UNKNOWN_ID = 9  # an id that no voter has
NEWCOMER = 8  # not UNKNOWN_ID: Kafka keeps using its connection to an id
STRANGE_ID = b"\x55" * 16
_MOST = 2**31 - 1
_OLDER = OffsetAndEpoch(0, 0)


class RaftRequests:
    """Makes requests to one node of the quorum that `view` shows.

    `epoch` and `leader_id` are those of that node, where it differs from the others.
    """

    def __init__(self, seed: int, directory_ids: Mapping[int, bytes], ports: Mapping[int, int]) -> None:
        self.random, self.directory_ids, self.ports = random.Random(seed), directory_ids, ports
        self.view: View | None = None
        self.node_id = self.epoch = self.leader_id = 0
        self._wrong = 0.0

    def __repr__(self) -> str:
        return f"<RaftRequests to {self.node_id} in epoch {self.epoch} of {self.leader_id}>"

    def prepare_for(self, view: View, node_id: int) -> None:
        self.view, self.node_id, self.epoch, self.leader_id = view, node_id, view.epoch, view.leader_id

    # --- random numbers

    def odds(self, chance: float) -> bool:
        return self.random.random() < chance

    def one(self, options: Sequence[T]) -> T:
        return self.random.choice(options)

    def no_mistakes(self) -> None:
        """Make the next request exactly as its arguments say."""
        self._wrong = 0.0

    def some_mistakes(self) -> None:
        self._wrong = self.one((0.0, 0.0, 0.1))

    def maybe_wrong(self, right: T, *wrong: T) -> T:
        """The right value, or a wrong one with this request's chance of mistakes."""
        return self.one(wrong) if self.odds(self._wrong) else right

    def version_for(self, request: Message) -> int:
        """A version in which the request can be encoded."""
        lowest, highest = valid_versions(api_key(request))
        for version in self.random.sample(range(lowest, highest + 1), highest - lowest + 1):
            with suppress(EncodeError):
                encode_bytes(request, version)
                return version
        raise AssertionError(f"no version can encode {request!r}")

    # --- what there is

    @property
    def log(self) -> Any:
        assert self.view is not None
        return self.view.log

    def cluster_id(self) -> str | None:
        return self.maybe_wrong(self.one((CLUSTER_ID, CLUSTER_ID, None)), "wrong", "")

    def topics(self, topic: T) -> list[T]:
        return [topic] * self.maybe_wrong(1, 0, 2)

    def place(self) -> tuple[int, int]:
        """An offset and the epoch of the record before it, with or without a mistake."""
        log, view = self.log, self.view
        assert view is not None
        offset = self.one((log.end_offset, log.end_offset, SNAPSHOT.offset, *view.batch_starts))
        epoch = max((one for one, start in self.epochs if start < offset), default=SNAPSHOT.epoch)
        return (
            self.maybe_wrong(offset, 0, SNAPSHOT.offset - 1, log.end_offset + 1, log.end_offset + 100, -1),
            self.maybe_wrong(epoch, *(one + by for one, _ in self.epochs for by in (-1, 0, 1)), 0, -1),
        )

    @property
    def epochs(self) -> list[tuple[int, int]]:
        assert self.view is not None
        return self.view.epochs

    # --- requests

    def next(self) -> tuple[Message, int]:
        """A request that changes nothing, in a version that has all of its fields."""
        self._wrong = self.one((0.0, 0.06, 0.06, 0.3))
        request: Message = self.one(self.HARMLESS)(self)
        return request, self.version_for(request)

    def fetch(self) -> Message:
        m = fetch_request
        offset, last_epoch = self.place()
        replica_id = self.one((-1, UNKNOWN_ID, UNKNOWN_ID + 1, self.node_id, self.one(VOTERS)))
        if replica_id in VOTERS and replica_id != self.node_id and offset != self.log.end_offset:
            replica_id = UNKNOWN_ID  # of a voter whose progress is compared, only its own fetches count
        directory_id = self.directory_ids.get(replica_id, self.one((STRANGE_ID, bytes(16))))
        by_name = self.odds(0.15)
        max_bytes = self.one((0, 1, 150, 400, 1 << 20, _MOST))
        if offset < self.epochs[1][1]:  # the number of batches with registrations varies
            max_bytes = 1 << 20
        partition = m.FetchPartition(
            self.maybe_wrong(0, 1, -1),
            self.maybe_wrong(self.epoch, self.epoch - 1, self.epoch + 1, 0, -1),
            offset,
            last_epoch,
            self.one((-1, SNAPSHOT.offset)),
            self.one((0, 1, 1 << 20)),
            self.maybe_wrong(directory_id, STRANGE_ID),
            self.one((2**63 - 1, -1, 0, self.log.end_offset, self.log.end_offset - 1)),
        )
        topic = m.FetchTopic(
            METADATA_TOPIC if by_name else self.maybe_wrong("", "x"),
            self.maybe_wrong(bytes(16) if by_name else METADATA_TOPIC_ID, STRANGE_ID),
            self.topics(partition),
        )
        request = m.FetchRequest(
            self.cluster_id(),
            max_wait_ms=self.maybe_wrong(self.one((0, 1, 20)), -1),
            min_bytes=self.one((0, 1, 100000)),
            max_bytes=max_bytes,
            session_id=self.one((0, 0, 0, 5)),
            session_epoch=self.one((-1, -1, -1, 0, 3)),
            topics=self.topics(topic),
        )
        if self.odds(0.3):
            request.replica_id = replica_id
        else:
            request.replica_state = m.ReplicaState(replica_id, self.one((-1, -1, 3)))
        return request

    def fetch_snapshot(self) -> Message:
        """Never from the node itself, nor without a partition: both end Kafka's process."""
        m = fetch_snapshot_request
        topics = [
            m.TopicSnapshot(
                self.maybe_wrong(METADATA_TOPIC, "x", ""),
                [self._piece_of_snapshot() for _ in range(self.maybe_wrong(1, 2, 3))],
            )
            for _ in range(self.maybe_wrong(1, 2))
        ]
        return m.FetchSnapshotRequest(
            self.cluster_id(),
            self.one([one for one in (UNKNOWN_ID, -1, *VOTERS) if one != self.node_id]),
            self.one((0, 1, 100, _MOST)),
            topics,
        )

    def _piece_of_snapshot(self) -> fetch_snapshot_request.PartitionSnapshot:
        m = fetch_snapshot_request
        return m.PartitionSnapshot(
            self.maybe_wrong(0, 1, -1),
            self.maybe_wrong(self.epoch, self.epoch - 1, self.epoch + 1, -1),
            m.SnapshotId(
                self.maybe_wrong(SNAPSHOT.offset, 0, SNAPSHOT.offset + 1, -1),
                self.maybe_wrong(SNAPSHOT.epoch, 0, 4, -1),
            ),
            self.maybe_wrong(self.one((0, 1, 100)), -1, 1 << 20, 2**62),
            self.one((bytes(16), STRANGE_ID)),
        )

    def vote(
        self, epoch: int | None = None, candidate_id: int | None = None, *, stale: bool | None = None
    ) -> Message:
        """Of an epoch that the node knows or a lower one, unless one is given.

        A `stale` candidate's log is behind. Without a leader it is never in the node's own name, which ends
        Kafka's process.
        """
        m = vote_request
        asked_epoch = self.maybe_wrong(self.epoch, self.epoch - 1, 0, -1) if epoch is None else epoch
        behind = self.odds(0.5) if stale is None else stale
        last = self.log.last_epoch
        others = [one for one in (UNKNOWN_ID, *VOTERS) if self.leader_id >= 0 or one != self.node_id]
        data = m.PartitionData(
            self.maybe_wrong(0, 1),
            asked_epoch,
            self.maybe_wrong(self.one(others), -1, -2) if candidate_id is None else candidate_id,
            self.one((STRANGE_ID, bytes(16))),
            self.maybe_wrong(self.one((bytes(16), self.directory_ids[self.node_id])), STRANGE_ID),
            self.one((0, last - 1, last))
            if behind
            else self.maybe_wrong(last, asked_epoch, asked_epoch + 1, -1),
            self.one((0, self.log.end_offset - 1))
            if behind
            else self.maybe_wrong(self.log.end_offset, 2**40, -1),
            self.odds(0.5),
        )
        topics = self.topics(m.TopicData(self.maybe_wrong(METADATA_TOPIC, "x"), self.topics(data)))
        voter_id = self.maybe_wrong(self.one((self.node_id, self.node_id, -1)), UNKNOWN_ID)
        return m.VoteRequest(self.cluster_id(), voter_id, topics)

    def begin_quorum_epoch(
        self, epoch: int | None = None, leader_id: int | None = None, listeners: Listeners = ()
    ) -> Message:
        """Of a past epoch or an unknown leader, unless these are given."""
        m = begin_quorum_epoch_request
        past = self.one(((self.epoch - 1, UNKNOWN_ID), (0, 1), (-1, UNKNOWN_ID), (self.epoch, -1)))
        data = m.PartitionData(
            self.maybe_wrong(0, 1),
            self.maybe_wrong(self.one((bytes(16), self.directory_ids[self.node_id])), STRANGE_ID),
            past[1] if leader_id is None else leader_id,
            past[0] if epoch is None else epoch,
        )
        topics = self.topics(m.TopicData(self.maybe_wrong(METADATA_TOPIC, "x"), self.topics(data)))
        voter_id = self.maybe_wrong(self.one((self.node_id, self.node_id, -1)), UNKNOWN_ID)
        endpoints = [m.LeaderEndpoint(one.listener, one.host, one.port) for one in listeners]
        return m.BeginQuorumEpochRequest(self.cluster_id(), voter_id, topics, endpoints)

    def end_quorum_epoch(
        self,
        epoch: int | None = None,
        leader_id: int | None = None,
        listeners: Listeners = (),
        successors: Sequence[int] = (),
    ) -> Message:
        m = end_quorum_epoch_request
        past = self.one(((self.epoch - 1, UNKNOWN_ID), (0, 1), (-1, UNKNOWN_ID), (self.epoch, -1)))
        data = m.PartitionData(
            self.maybe_wrong(0, 1),
            past[1] if leader_id is None else leader_id,
            past[0] if epoch is None else epoch,
            tuple(successors),
            [m.ReplicaInfo(one, self.directory_ids.get(one, STRANGE_ID)) for one in successors],
        )
        topics = self.topics(m.TopicData(self.maybe_wrong(METADATA_TOPIC, "x"), self.topics(data)))
        endpoints = [m.LeaderEndpoint(one.listener, one.host, one.port) for one in listeners]
        return m.EndQuorumEpochRequest(self.cluster_id(), topics, endpoints)

    def describe_quorum(self) -> Message:
        m = describe_quorum_request
        topic = m.TopicData(
            self.maybe_wrong(METADATA_TOPIC, "x", ""), self.topics(m.PartitionData(self.maybe_wrong(0, 1)))
        )
        return m.DescribeQuorumRequest(self.topics(topic))

    def add_voter(self) -> Message:
        """A voter that cannot be added: no process listens at its address, or it is a voter already."""
        m = add_raft_voter_request
        voter_id = self.one((NEWCOMER, NEWCOMER, *VOTERS, -1))
        return m.AddRaftVoterRequest(
            self.cluster_id(),
            200,
            voter_id,
            self.maybe_wrong(self.directory_ids.get(voter_id, STRANGE_ID), STRANGE_ID, bytes(16)),
            self.maybe_wrong(
                [m.Listener("CONTROLLER", "127.0.0.1", 1)], [], [m.Listener("OTHER", "127.0.0.1", 1)]
            ),
            self.odds(0.5),
        )

    def remove_voter(self) -> Message:
        """A controller that is no voter, by its id or its directory."""
        voter_id = self.one((UNKNOWN_ID, -1, *VOTERS))
        directory_id = self.one((STRANGE_ID, bytes(16)))
        return RemoveRaftVoterRequest(self.cluster_id(), voter_id, directory_id)

    def update_voter(self) -> Message:
        """A controller that is no voter, or an update that is malformed."""
        m = update_raft_voter_request
        voter_id = self.one((UNKNOWN_ID, -1, *VOTERS))
        known = voter_id in VOTERS
        right = [m.Listener("CONTROLLER", "127.0.0.1", 1)]
        wrong: list[list[Any]] = [[], [m.Listener("OTHER", "127.0.0.1", 1)]]
        return m.UpdateRaftVoterRequest(
            self.cluster_id(),
            self.maybe_wrong(self.epoch, self.epoch - 1, self.epoch + 1, -1),
            voter_id,
            self.one((STRANGE_ID, bytes(16))),
            self.one(wrong) if known and self.static else self.maybe_wrong(right, *wrong),
            m.KRaftVersionFeature(*self.maybe_wrong((0, 1), (0, 0), (2, 3), (1, 0), (-1, 1))),
        )

    static = False  # a static quorum identifies a voter by its id alone

    def api_versions(self) -> Message:
        return ApiVersionsRequest(*self.maybe_wrong(("a", "1"), ("", "1"), ("a b", "1"), ("-a", "1")))

    def update_features(self) -> Message:
        """Of kraft.version: validated only, or impossible."""
        m = update_features_request
        level, kind = self.one(((0, 1), (1, 1), (2, 1), (-1, 1), (0, 2), (0, 3), (1, 2), (1, 0), (1, 9)))
        update = m.FeatureUpdateKey("kraft.version", level, False, kind)
        return m.UpdateFeaturesRequest(30000, [update] * self.maybe_wrong(1, 0), True)

    HARMLESS: tuple[Callable[[RaftRequests], Any], ...] = (
        *[fetch] * 10,
        *[fetch_snapshot] * 4,
        *[vote] * 4,
        *[begin_quorum_epoch] * 2,
        *[end_quorum_epoch] * 2,
        *[describe_quorum] * 2,
        *[add_voter] * 2,
        *[remove_voter] * 2,
        *[update_voter] * 3,
        api_versions,
        update_features,
    )
