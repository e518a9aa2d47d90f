"""The node of a broker: its life with the controllers, and answers to its clients, without IO."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.answers.effects import Answered, SendToNode
from kraftd.answers.node import AnsweringNode
from kraftd.answers.settings import ClientSettings
from kraftd.answers.view import ClusterView
from kraftd.broker_node.effects import NotRegistered
from kraftd.broker_node.lifecycle import Broker, BrokerLifecycle
from kraftd.ground.effect import Effect
from kraftd.ground.event import Event
from kraftd.requests.registry import Registry
from kraftd.security.authorizer import Authorizer

LIFECYCLE_REQUEST = -1  # the id of a SendToNode of the lifecycle; those of calls count from 1


class BrokerNode(AnsweringNode):
    """One broker. A step must not call it again."""

    def __init__(
        self,
        view: ClusterView,
        settings: ClientSettings,
        registry: Callable[[AnsweringNode], Registry],
        broker: Broker,
        authorizer: Authorizer | None = None,
    ) -> None:
        super().__init__(view, settings, registry, authorizer)
        self.lifecycle = BrokerLifecycle(broker, self.outbox)
        self._has_failed = False

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        self.now_ms = now_ms
        self.handlers[type(event)](event)
        self._communicate()
        return self.outbox.take()

    def deadlines_ms(self) -> list[int | None]:
        return [self.lifecycle.deadline_ms(), *super().deadlines_ms()]

    def on_started(self) -> None:
        self.lifecycle.start(self.now_ms)
        self._recover()

    def on_stop_requested(self) -> None:
        self.lifecycle.stop(self.now_ms)

    @property
    def has_ended(self) -> bool:
        return self.lifecycle.has_ended

    def on_metadata_moved(self) -> None:
        super().on_metadata_moved()
        self._recover()

    def on_answered(self, event: Answered) -> None:
        if event.request_id == LIFECYCLE_REQUEST:
            self.lifecycle.answered(event.message, self.now_ms)
        else:
            super().on_answered(event)

    def _recover(self) -> None:
        """Be ready to serve once the metadata is known: there is nothing else on disk yet."""
        if self.view.is_loaded:
            self.lifecycle.ready(self.now_ms)

    def _communicate(self) -> None:
        """Send what the lifecycle has to say, if the active controller is known."""
        lifecycle = self.lifecycle
        request = lifecycle.due_request(self.view.applied_end_offset - 1, self.now_ms)
        if request is not None:
            destination = self.view.controller_destination()
            if destination is None:
                lifecycle.postpone(self.now_ms)
            else:
                self.outbox.emit(SendToNode(LIFECYCLE_REQUEST, destination, request))
        if lifecycle.timed_out and not self._has_failed:
            self._has_failed = True
            self.outbox.emit(NotRegistered(lifecycle.broker.registration_timeout_ms))

    def __repr__(self) -> str:
        return f"<BrokerNode {self.view.node_id}, {self.lifecycle!r}>"
