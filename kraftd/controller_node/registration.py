"""Registers this run of the node with the active controller (KIP-919).

Every controller, voter or not, sends ControllerRegistration after each start, and again, ever more rarely,
until its record is in its image: a node whose disk is full waits long for that. The active controller
writes its own record: when it becomes active (`activation`), and when another incarnation's record has
replaced it.

Two processes under one id replace each other's records, so each of them notices the other.
"""

from __future__ import annotations

from kraftd.controller.context import Context
from kraftd.controller.features.controllers import register_controller
from kraftd.controller_node.deciding.decision_rights import DecisionRights
from kraftd.controller_node.deciding.decisions import Decisions
from kraftd.controller_node.watching.duplicate_ids import REMEDY
from kraftd.ground.destination import Destination
from kraftd.ground.refusal import Refusal
from kraftd.messages.controller_registration_request import ControllerRegistrationRequest, Feature, Listener
from kraftd.messages.controller_registration_response import ControllerRegistrationResponse
from kraftd.metadata.features import supported_features
from kraftd.metadata.metadata_version import allows_controller_registration
from kraftd.raft.core import RaftCore
from kraftd.replica.effects import SendToController
from kraftd.replica.events import ControllerAnswered
from kraftd.replica.fatal_faults import FATAL
from kraftd.replica.identity import Identity
from kraftd.requests.outbox import Outbox
from kraftd.requests.repeats import Repeats
from kraftd.types import Endpoint
from kraftd.wire.error_code import ErrorCode

FIRST_BACKOFF_MS = 100
LONGEST_BACKOFF_MS = 60_000
# An accepted registration is sent again if its record does not arrive within this time, later twice as long.
UNTIL_SEEN_MS = 5_000


class Registration:
    """When and where to send the registration. Call `attempt` after each change that may affect it, and at
    `deadline_ms`.
    """

    def __init__(
        self,
        identity: Identity,
        context: Context,
        core: RaftCore,
        rights: DecisionRights,
        decisions: Decisions,
        outbox: Outbox,
    ) -> None:
        self.deadline_ms: int | None = None
        self._identity = identity
        self._context = context
        self._core = core
        self._rights = rights
        self._decisions = decisions
        self._outbox = outbox
        self._request_id = 0
        self._in_flight = False
        self._sent_to: tuple[int, int | None] = (-1, None)  # epoch and leader
        self._failures = 0
        self._accepted = 0  # registrations whose record is not in the image yet
        self._not_before_ms = 0
        self._repeats = Repeats()
        self._is_in_force = False  # this run's record was the last one of its id
        self._duplicate_ms: int | None = None
        self._duplicate_at = ""

    @property
    def is_due(self) -> bool:
        """Return whether metadata.version allows a registration and the image has none of this run."""
        identity, image = self._identity, self._context.image
        if not identity.is_controller:
            return False
        known = image.controllers.get(identity.node_id)
        if known is not None and known.incarnation_id == identity.incarnation_id:
            return False
        return allows_controller_registration(image.metadata_version)

    def request(self) -> ControllerRegistrationRequest:
        """The registration request of this node."""
        identity = self._identity
        supported = supported_features(unstable=self._context.settings.unstable_feature_versions_enable)
        return ControllerRegistrationRequest(
            controller_id=identity.node_id,
            incarnation_id=identity.incarnation_id,
            listeners=[
                Listener(endpoint.listener, endpoint.host, endpoint.port, endpoint.security_protocol)
                for endpoint in identity.endpoints
            ],
            features=[Feature(name, low, high) for name, (low, high) in supported.items()],
        )

    def write(self) -> None:
        """Append this run's registration if it is due; on the active controller.

        If that fails, `attempt` repeats it: the node can lead without its record.
        """
        if not self.is_due:
            return
        request = self.request()
        try:
            self._decisions.decide_alone(lambda ctx: register_controller(ctx, request))
        except FATAL:
            raise
        except Refusal:
            pass  # the disk is full, or this node no longer leads
        except Exception as error:
            self._decisions.failures += 1
            self._outbox.log("error", "this node could not register", error=repr(error), exc_info=error)

    def attempt(self) -> None:
        """Send the registration if it is due and an active controller is known."""
        self.deadline_ms = None
        core, rights = self._core, self._rights
        now = (core.epoch, core.leader_id)
        if now != self._sent_to:  # another leader: the previous one's answer no longer counts
            self._sent_to = now
            self._in_flight = False
            self._failures = self._not_before_ms = 0
            self._request_id += 1
        if not self.is_due:
            self._accepted = 0
            return
        if rights.stopping or self._in_flight:
            return
        if rights.active:
            if not self._decisions.long.is_under_way:  # the end of a long decision attempts this again
                self._write_rarely()
            return
        endpoint = core.leader_endpoint(self._identity.quorum_listener)
        if core.leader_id in (None, self._identity.node_id) or endpoint is None:
            return
        if self._context.now_ms < self._not_before_ms:
            self.deadline_ms = self._not_before_ms
            return
        assert core.leader_id is not None
        self._in_flight = True
        destination = Destination(core.leader_id, endpoint.host, endpoint.port)
        self._outbox.emit(SendToController(self._request_id, destination, self.request()))

    def check_for_duplicate(self) -> None:
        """Note that another process has registered under this node's id since this one did.

        Only a standby with a complete image does so: what it shows is committed. `forget-controller`
        registers without listeners.
        """
        identity = self._identity
        known = self._context.image.controllers.get(identity.node_id)
        if known is None or self._rights.active:
            return
        if known.incarnation_id == identity.incarnation_id:
            self._is_in_force = True
        elif self._is_in_force and known.listeners:
            self._is_in_force = False
            self._duplicate_ms, self._duplicate_at = self._context.now_ms, _where(known.listeners)
            count = self._repeats.due(identity.node_id, self._context.now_ms * 1_000_000)
            if count:
                self._outbox.log(
                    "error",
                    "another process runs under this node's id",
                    its_listeners=self._duplicate_at,
                    remedy=REMEDY,
                    seen=count,
                )

    def duplicate(self) -> list[str]:
        """A line for the process that registers under this node's id as well, if one did just now."""
        if self._duplicate_ms is None or self._context.now_ms - self._duplicate_ms >= 3 * UNTIL_SEEN_MS:
            return []
        where = f"here and with the listeners {self._duplicate_at}"
        return [f"node {self._identity.node_id} runs more than once, {where}; {REMEDY}"]

    def _write_rarely(self) -> None:
        """Write the record, but rarely: two processes with this node's id must not fill the log by
        alternating.
        """
        now_ms = self._context.now_ms
        if now_ms >= self._not_before_ms:
            self._not_before_ms = now_ms + UNTIL_SEEN_MS
            self.write()
        if self.is_due:
            self.deadline_ms = self._not_before_ms

    def on_answer(self, event: ControllerAnswered) -> None:
        """Handle the active controller's answer, or its absence."""
        if event.request_id != self._request_id or not self._in_flight:
            return
        self._in_flight = False
        answer, now_ms = event.message, self._context.now_ms
        if isinstance(answer, ControllerRegistrationResponse) and answer.error_code == ErrorCode.NONE:
            self._not_before_ms = now_ms + min(UNTIL_SEEN_MS << min(self._accepted, 16), LONGEST_BACKOFF_MS)
            self._accepted += 1
            self._outbox.log("info", "registered", controller=self._sent_to[1])
        else:
            backoff_ms = FIRST_BACKOFF_MS << min(self._failures, 16)
            self._failures += 1
            self._not_before_ms = now_ms + min(backoff_ms, LONGEST_BACKOFF_MS)
        self._request_id += 1
        self.attempt()

    def __repr__(self) -> str:
        return f"<Registration {'asked' if self._in_flight else 'idle'}, next at {self.deadline_ms} ms>"


def _where(listeners: tuple[Endpoint, ...]) -> str:
    return ", ".join(f"{one.listener}://{one.host}:{one.port}" for one in listeners)
