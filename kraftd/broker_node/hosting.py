"""Lets a broker host the partitions that the committed metadata gives it, and follow what changes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Protocol

from kraftd.answers.view import ClusterView
from kraftd.broker_node.directories.strays import set_strays_aside
from kraftd.broker_node.lifecycle import BrokerLifecycle
from kraftd.broker_node.partitions.replicas import Hosted, Replicas
from kraftd.ground.effect import Effect
from kraftd.metadata.image import Image
from kraftd.metadata.replica_changes import ReplicaChange
from kraftd.requests.outbox import Outbox
from kraftd.types import Uuid

CHANGES_PER_CALLBACK = 50  # of hosted partitions: each opens a log

Slices = Iterator[None]


class Node(Protocol):
    """The broker node."""

    now_ms: int
    view: ClusterView
    outbox: Outbox
    replicas: Replicas
    lifecycle: BrokerLifecycle

    def go_on(self, slices: Slices) -> None: ...

    def follow_up(self, hosted: Hosted, effects: list[Effect]) -> None: ...

    def on_leadership(self, before: Hosted | None, hosted: Hosted | None) -> None: ...

    def topics_deleted(self, topics: list[tuple[str, Uuid]]) -> None: ...

    def become_ready(self) -> None: ...


class Hosting:
    """`has_begun`: the partitions of the metadata that the broker began with are hosted."""

    def __init__(self, node: Node) -> None:
        self.has_begun = False
        self._node = node
        self._found: Mapping[tuple[str, int], Uuid | None] | None = None  # logs at the start, until hosted
        self._is_changing = False
        self._image = node.view.image  # whose partitions are hosted
        self._followed: tuple[Image, int] | None = None  # the content, once all of it is committed and hosted

    def __repr__(self) -> str:
        return f"<Hosting of {self._node!r}, {'begun' if self.has_begun else 'not begun'}>"

    def logs_loaded(self, topic_ids: Mapping[tuple[str, int], Uuid | None]) -> None:
        """The logs that were found at the start, with their topic ids."""
        self._found = topic_ids
        self.follow_metadata()

    def follow_metadata(self) -> None:
        """Take what has changed of the hosted partitions, once the metadata and the logs are known.

        Logs are not opened before the metadata has caught up with the registration. A log may be younger than
        what is replayed at a start, and be taken for that of a former topic.
        """
        node = self._node
        is_known = node.view.is_loaded and node.lifecycle.is_caught_up
        if is_known and self._found is not None and not self._is_changing:
            self._is_changing = True
            node.go_on(self._change())

    def note_followed(self) -> None:
        """Note that every part of the node has followed the metadata."""
        view = self._node.view
        is_settled = view.image_end_offset <= view.high_watermark and not self._is_changing
        self._followed = (view.image, view.image.content_version) if is_settled else None

    def has_followed(self) -> bool:
        """Return whether nothing but records without content has come since."""
        image, followed = self._node.view.image, self._followed
        is_same = followed is not None and followed[0] is image and followed[1] == image.content_version
        return is_same and not self._is_changing

    def _begin(self) -> Slices:
        """Host the partitions of the metadata so far, by the newest change of each."""
        node = self._node
        while node.view.settle_replica_changes():
            yield
        newest = node.view.take_newest_changes()
        found, self._found = self._found, {}
        assert found is not None
        yield from set_strays_aside(found, newest, node.outbox)
        # By the keys of the logs: each of very many partitions would keep a key of its own.
        of_logs = ((key, change) for key in found if (change := newest.pop(*key)))
        of_others = (((change.topic, change.partition), change) for change in newest)
        for number, (key, change) in enumerate(chain(of_logs, of_others), 1):
            node.replicas.begin(key, change)
            if not number % CHANGES_PER_CALLBACK:
                yield
        self.has_begun = True

    def _change(self) -> Slices:
        node = self._node
        if not self.has_begun:
            yield from self._begin()
        while changes := node.view.take_replica_changes(CHANGES_PER_CALLBACK):
            for change in self._lasting(changes):
                key = change.topic, change.partition
                before = node.replicas.get(*key)
                effects = node.replicas.apply(change, node.now_ms)
                hosted = node.replicas.get(*key)
                if hosted is not None:
                    node.follow_up(hosted, effects)
                if before is not None:
                    node.on_leadership(before, hosted)
            yield
        node.topics_deleted(node.view.take_removed_topics())
        self._forget_unlisted()
        self._is_changing = False
        node.become_ready()

    def _lasting(self, changes: list[ReplicaChange]) -> Iterator[ReplicaChange]:
        """All but those by which this broker leads a partition that has another leader already, as after a
        freeze. It would note an epoch without records then, and at once fetch as if it had not.
        """
        own_id = self._node.view.node_id
        newest = {(change.topic_id, change.partition): change.state for change in changes}
        for change in changes:
            last = newest[change.topic_id, change.partition]
            leads = change.state is not None and change.state.leader == own_id
            if not leads or last is change.state or (last is not None and last.leader == own_id):
                yield change

    def _forget_unlisted(self) -> None:
        """After a snapshot has replaced the image, drop the partitions and topics that it lacks."""
        node, view = self._node, self._node.view
        if view.image is self._image or view.applied_end_offset < view.high_watermark:
            return
        former, self._image = self._image, view.image
        gone_topics = former.topics.keys() - view.image.topics.keys()
        node.topics_deleted([(former.topics[id].name, id) for id in gone_topics])
        listed = set(view.image.partitions_of(view.node_id))
        for hosted in list(node.replicas):
            if (hosted.topic_id, hosted.index) not in listed:
                gone = ReplicaChange(-1, hosted.topic_id, hosted.topic, hosted.index, None)
                node.replicas.apply(gone, node.now_ms)
                node.on_leadership(hosted, None)
