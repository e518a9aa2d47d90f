"""A broker's life as the active controller sees it: registered, caught up, unfenced, shut down in order.

The rules are those of Kafka's BrokerLifecycleManager (KIP-631, KIP-500). One request is under way at a time:
BrokerRegistration until one is accepted, then BrokerHeartbeat. `due_request` gives what to send now,
`answered` takes the answer or its absence.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum

from kraftd.ground.ticks import earliest_ms
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kraftd.messages.broker_registration_response import BrokerRegistrationResponse
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import allows_cordoned_directories, allows_directory_assignment
from kraftd.named_tuple import NamedTuple
from kraftd.requests.outbox import Outbox
from kraftd.types import Endpoint, Uuid, in_kafkas_order
from kraftd.wire.error_code import ErrorCode, error_name
from kraftd.wire.message import Message

FIRST_BACKOFF_MS = 100
STARTING_HEARTBEAT_MS = 10  # while starting: with nothing to recover, a start then takes no longer
FIRST_SHUTDOWN_HEARTBEAT_MS = 50  # after the first answer to a wish to shut down
SESSION_END_RETRY_MS = 1_000
CONTROLLER_RETRY_MS = 50  # until another look for the active controller


class BrokerState(IntEnum):
    """Kafka's states of a broker, as its metric BrokerState counts them."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class Cause(Enum):
    """What changes a broker's state."""

    STARTED = "started"
    CAUGHT_UP = "caught up"  # the controller says so
    UNFENCED = "unfenced"  # the controller says so
    STOP_REQUESTED = "stop requested"
    SHUTDOWN_GRANTED = "shutdown granted"  # the controller says so
    NOT_REGISTERED_IN_TIME = "not registered in time"
    LOSS_UNREPORTED = "loss of a directory unreported"


# Rules. 1. A state is never entered again. 2. Only a broker that is RUNNING asks the controller before it
# shuts down: before that it leads no partition. 3. SHUTTING_DOWN is final.
TRANSITIONS: dict[tuple[BrokerState, Cause], BrokerState] = {
    (BrokerState.NOT_RUNNING, Cause.STARTED): BrokerState.STARTING,
    (BrokerState.STARTING, Cause.CAUGHT_UP): BrokerState.RECOVERY,
    (BrokerState.RECOVERY, Cause.UNFENCED): BrokerState.RUNNING,
    (BrokerState.RUNNING, Cause.STOP_REQUESTED): BrokerState.PENDING_CONTROLLED_SHUTDOWN,
    (BrokerState.PENDING_CONTROLLED_SHUTDOWN, Cause.SHUTDOWN_GRANTED): BrokerState.SHUTTING_DOWN,
    (BrokerState.NOT_RUNNING, Cause.STOP_REQUESTED): BrokerState.SHUTTING_DOWN,
    (BrokerState.STARTING, Cause.STOP_REQUESTED): BrokerState.SHUTTING_DOWN,
    (BrokerState.RECOVERY, Cause.STOP_REQUESTED): BrokerState.SHUTTING_DOWN,
    (BrokerState.STARTING, Cause.NOT_REGISTERED_IN_TIME): BrokerState.SHUTTING_DOWN,
    (BrokerState.STARTING, Cause.LOSS_UNREPORTED): BrokerState.SHUTTING_DOWN,
    (BrokerState.RECOVERY, Cause.LOSS_UNREPORTED): BrokerState.SHUTTING_DOWN,
    (BrokerState.RUNNING, Cause.LOSS_UNREPORTED): BrokerState.SHUTTING_DOWN,
    (BrokerState.PENDING_CONTROLLED_SHUTDOWN, Cause.LOSS_UNREPORTED): BrokerState.SHUTTING_DOWN,
}


NO_CONTROLLER = (
    "it found no active controller. See that a majority of the controllers runs, and that "
    "controller.quorum.bootstrap.servers or controller.quorum.voters names them"
)
ANOTHER_PROCESS = (
    "wait until this broker's former session ends; if this goes on, another process runs under this node.id: "
    "stop it, or give one of them another id"
)
_WHY_NOT_REGISTERED: dict[int | None, str] = {
    None: (
        "the last request got no answer in time. See that the active controller runs and is reached from "
        "here. If it or this process gets too little processor time, raise that key: after a kill, all "
        "partitions that the broker led are moved away first"
    ),
    ErrorCode.DUPLICATE_BROKER_REGISTRATION: (
        "another process with this node.id is registered, and its session has not ended. Stop it, or wait "
        "for that end. If the active controller gets too little processor time, raise that key"
    ),
}


class Broker(NamedTuple):
    """What a broker tells the controller of itself, and its settings.

    `directory_ids` are those of its log directories. `previous_epoch` is its broker epoch before the last
    clean shutdown, -1 after any other.
    """

    node_id: int
    cluster_id: str
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    directory_ids: tuple[Uuid, ...]
    features: Mapping[str, tuple[int, int]]
    rack: str | None = None
    previous_epoch: int = -1
    heartbeat_interval_ms: int = 2_000  # broker.heartbeat.interval.ms
    registration_timeout_ms: int = 60_000  # initial.broker.registration.timeout.ms
    directory_failure_timeout_ms: int = 30_000  # log.dir.failure.timeout.ms
    controlled_shutdown: bool = True  # controlled.shutdown.enable

    def registration(self) -> BrokerRegistrationRequest:
        """The request that registers this run of the broker."""
        return BrokerRegistrationRequest(
            broker_id=self.node_id,
            cluster_id=self.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                Listener(one.listener, one.host, one.port, one.security_protocol) for one in self.endpoints
            ],
            features=[Feature(name, low, high) for name, (low, high) in self.features.items()],
            rack=self.rack,
            log_dirs=in_kafkas_order(self.directory_ids),
            previous_broker_epoch=self.previous_epoch,
        )


class BrokerLifecycle:
    """The life of one run of a broker.

    `broker_epoch` is -1 until it is registered. `is_fenced` is what the controller said last.
    """

    def __init__(self, broker: Broker, outbox: Outbox) -> None:
        self.broker = broker
        self.state = BrokerState.NOT_RUNNING
        self.broker_epoch = -1
        self.is_fenced = True
        self.failure: str | None = None  # why the process must end
        self.is_caught_up = False  # with this run's registration: it knows all topics of earlier runs
        self._outbox = outbox
        self._ready = False  # to serve: everything on disk is recovered
        self._in_flight = False
        self._is_postponed = False  # until an active controller is known
        self._at_once = False  # after the request that is under way
        self._only_beat = False  # the last answer changed only when the next heartbeat is due
        self._failures = 0
        self._not_registered = NO_CONTROLLER  # why, for the end of the process
        self._shutdown_was_answered = False
        self._due_ms: int | None = None
        self._register_by_ms: int | None = None
        self._is_registered = False  # no registration is to be sent now
        self._directories_asked_at = 0  # the metadata.version at which it registered again for them
        self._report_by_ms: int | None = None  # the loss of directories
        self._reported: tuple[Uuid, ...] = ()  # by the heartbeat under way
        self.offline_directories: tuple[Uuid, ...] = ()
        self.cordoned_directories: tuple[Uuid, ...] = ()
        self._reports_cordoned = False  # the metadata.version knows of them

    # -- what the node wants

    def start(self, now_ms: int) -> None:
        """Begin to register."""
        if self._moves(Cause.STARTED):
            self._register_by_ms = now_ms + self.broker.registration_timeout_ms
            self._due_ms = now_ms

    def wait_for_metadata(self, now_ms: int) -> None:
        """Note that the controller of this process still reads the metadata log, and cannot register it yet.

        The time to be registered begins at the end of that, as in Kafka, which starts the broker after it.
        """
        if self._register_by_ms is not None:
            self._register_by_ms = now_ms + self.broker.registration_timeout_ms

    def ready(self, now_ms: int) -> None:
        """Note that the broker can serve: from now on it wants to be unfenced."""
        if not self._ready:
            self._ready = True
            self._communicate_at_once(now_ms)

    def directories_failed(self, directory_ids: tuple[Uuid, ...], now_ms: int) -> None:
        """Report log directories that went offline, all of them so far (KIP-858)."""
        if directory_ids != self.offline_directories:
            self.offline_directories = directory_ids
            self._report_by_ms = now_ms + self.broker.directory_failure_timeout_ms
            self._communicate_at_once(now_ms)

    def directories_cordoned(self, directory_ids: tuple[Uuid, ...], now_ms: int) -> None:
        """Report the log directories that take no new replicas (KIP-1066)."""
        if directory_ids != self.cordoned_directories:
            self.cordoned_directories = directory_ids
            self._communicate_at_once(now_ms)

    def metadata_moved(self, image: Image, now_ms: int) -> None:
        """Register again if this run registered without directories and the metadata.version allows them now.

        Without the directories, the controller could not move leaders away from one that fails (KIP-858).
        """
        level, known = image.metadata_version, image.brokers.get(self.broker.node_id)
        self._reports_cordoned = allows_cordoned_directories(level)
        if (
            known is not None
            and known.epoch == self.broker_epoch
            and not known.directories
            and allows_directory_assignment(level)
            and level != self._directories_asked_at
        ):
            self._directories_asked_at = level
            self._is_registered = False
            self._communicate_at_once(now_ms)

    def stop(self, now_ms: int) -> None:
        """Begin to shut down: at once, or, while running, once the controller has moved the leaders away."""
        if self.state is BrokerState.RUNNING and not self.broker.controlled_shutdown:
            self._enter(BrokerState.SHUTTING_DOWN)
        elif self._moves(Cause.STOP_REQUESTED) and self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self._communicate_at_once(now_ms)

    @property
    def has_ended(self) -> bool:
        """Return whether the broker need not wait for the controller any more."""
        return self.state is BrokerState.SHUTTING_DOWN

    # -- requests and answers

    def deadline_ms(self) -> int | None:
        """When `due_request` may have something; None for never."""
        if self.has_ended:
            return None
        due_ms = None if self._in_flight else self._due_ms
        return earliest_ms(due_ms, self._register_by_ms, self._report_by_ms)

    def is_due(self, now_ms: int) -> bool:
        """Return whether `due_request` may have something."""
        due_ms = self._due_ms  # every step of the node asks
        limited = self._register_by_ms is not None or self._report_by_ms is not None
        if not limited and (due_ms is None or due_ms > now_ms):
            return False
        due_ms = self.deadline_ms()
        return due_ms is not None and due_ms <= now_ms

    def due_request(self, metadata_offset: int, now_ms: int) -> Message | None:
        """The request to send now; `answered` or `postpone` must follow.

        `metadata_offset` is that of the last record in the image.
        """
        if self._register_by_ms is not None and self._register_by_ms <= now_ms:
            self._register_by_ms = None
            if self._moves(Cause.NOT_REGISTERED_IN_TIME):
                self.failure = (
                    f"no controller registered this broker within {self.broker.registration_timeout_ms} ms "
                    f"(initial.broker.registration.timeout.ms): {self._not_registered}"
                )
        if self._report_by_ms is not None and self._report_by_ms <= now_ms:
            self._report_by_ms = None
            if self._moves(Cause.LOSS_UNREPORTED):
                self.failure = (
                    "no controller was notified of this broker's offline log directories within "
                    f"{self.broker.directory_failure_timeout_ms} ms (log.dir.failure.timeout.ms)"
                )
        if self._in_flight or self._due_ms is None or self._due_ms > now_ms or self.has_ended:
            return None
        self._in_flight, self._at_once, self._is_postponed = True, False, False
        if not self._is_registered:
            return self.broker.registration()
        self._reported = self.offline_directories
        # Controllers of releases before 4.3 know no request with this field (KIP-1066).
        reports_cordoned = self._reports_cordoned and self.state is not BrokerState.STARTING
        return BrokerHeartbeatRequest(
            broker_id=self.broker.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=metadata_offset,
            want_fence=not self._ready,
            want_shut_down=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=self.offline_directories,
            cordoned_log_dirs=self.cordoned_directories if reports_cordoned else None,
        )

    def postpone(self, now_ms: int) -> None:
        """Take a request back: the active controller is not known, or is another by now."""
        self._in_flight, self._is_postponed = False, True
        self._due_ms = now_ms + CONTROLLER_RETRY_MS

    def controller_found(self, now_ms: int) -> None:
        """Send at once what was postponed: another active controller is known."""
        if self._is_postponed:
            self._due_ms = now_ms

    def answered(self, answer: Message | None, now_ms: int) -> None:
        """Handle the answer to the request under way; None without one."""
        if not self._in_flight:
            return
        error = getattr(answer, "error_code", None)
        was_serving, self._only_beat = self._is_serving, False
        if error == ErrorCode.NOT_CONTROLLER:
            self.postpone(now_ms)
            return
        self._in_flight = False
        if error == ErrorCode.NONE and isinstance(answer, BrokerRegistrationResponse):
            self._registered(answer, now_ms)
        elif error == ErrorCode.NONE and isinstance(answer, BrokerHeartbeatResponse):
            self._failures = 0
            if self._reported == self.offline_directories:
                self._report_by_ms = None
            self._due_ms = now_ms + self._heard(answer)
        else:
            self._failed(error, now_ms)
        if self._at_once:
            self._due_ms = now_ms
        self._only_beat = was_serving and self._is_serving

    @property
    def _is_serving(self) -> bool:
        return self.state is BrokerState.RUNNING and not self.is_fenced

    @property
    def next_beat_ms(self) -> int | None:
        """When `due_request` may have something, if the last answer changed nothing else; None if it did."""
        return self.deadline_ms() if self._only_beat else None

    def _registered(self, answer: BrokerRegistrationResponse, now_ms: int) -> None:
        self._failures = 0
        self._register_by_ms = None
        self._is_registered = True
        self.broker_epoch = answer.broker_epoch
        self._due_ms = now_ms
        self._outbox.log("info", "registered as a broker", broker_epoch=self.broker_epoch)

    def _heard(self, answer: BrokerHeartbeatResponse) -> int:
        """Handle what the controller says; return the milliseconds until the next heartbeat."""
        self.is_fenced = answer.is_fenced
        if self.state is BrokerState.STARTING:
            if answer.is_caught_up:
                self.is_caught_up = self._moves(Cause.CAUGHT_UP)
            return STARTING_HEARTBEAT_MS
        if self.state is BrokerState.RECOVERY and not answer.is_fenced:
            self._moves(Cause.UNFENCED)
        elif self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            is_first, self._shutdown_was_answered = not self._shutdown_was_answered, True
            if answer.should_shut_down:
                self._moves(Cause.SHUTDOWN_GRANTED)
            elif is_first:
                return FIRST_SHUTDOWN_HEARTBEAT_MS
        return self.broker.heartbeat_interval_ms

    def _failed(self, error: int | None, now_ms: int) -> None:
        """Ask again, ever more rarely, but as often as a broker of Kafka at least: no session ends before."""
        backoff_ms = min(FIRST_BACKOFF_MS << min(self._failures, 16), self.broker.heartbeat_interval_ms)
        if error == ErrorCode.DUPLICATE_BROKER_REGISTRATION:  # until the session of a former process ends
            backoff_ms = min(backoff_ms, SESSION_END_RETRY_MS)
        self._failures += 1
        self._due_ms = now_ms + backoff_ms
        why = "no answer" if error is None else error_name(error)
        self._not_registered = _WHY_NOT_REGISTERED.get(
            error, f"the last answer was {why}. The log of the active controller says why"
        )
        what = "send a heartbeat" if self._is_registered else "register"
        more = {"remedy": ANOTHER_PROCESS} if error == ErrorCode.DUPLICATE_BROKER_REGISTRATION else {}
        self._outbox.log("warning", f"the broker could not {what}", error=why, again_in_ms=backoff_ms, **more)

    def _communicate_at_once(self, now_ms: int) -> None:
        self._at_once = self._in_flight
        if self._due_ms is not None:
            self._due_ms = now_ms

    # -- states

    def _moves(self, cause: Cause) -> bool:
        """Change the state if the cause does; return whether it did."""
        following = TRANSITIONS.get((self.state, cause))
        if following is not None:
            self._enter(following)
        return following is not None

    def _enter(self, state: BrokerState) -> None:
        self._outbox.log("info", "broker state", state=state.name, was=self.state.name)
        self.state = state

    def __repr__(self) -> str:
        fenced = "fenced" if self.is_fenced else "unfenced"
        return f"<BrokerLifecycle {self.state.name}, {fenced}, broker epoch {self.broker_epoch}>"
