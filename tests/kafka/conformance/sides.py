"""The two controllers with SASL and the StandardAuthorizer, and a connection of each principal to each."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random
from time import sleep, time
from typing import Any, NamedTuple

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.delegation_token_record import DelegationTokenRecord
from kraftd.messages.fetch_snapshot_request import FetchSnapshotRequest, SnapshotId
from kraftd.messages.fetch_snapshot_response import FetchSnapshotResponse, PartitionSnapshot
from kraftd.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftd.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftd.metadata import metadata_version as mv
from kraftd.metadata_dir.files.checkpoint import checkpoint_name, parse_checkpoint_name
from kraftd.security.sasl.delegation_tokens import token_hmac
from kraftd.types import OffsetAndEpoch
from kraftd.wire.api import ApiKey
from kraftd.wire.frames import encode_request, parse_response
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from testkit.client import Client
from testkit.process import HOST, wait_until
from tests.kafka.conformance.settling import Settling
from tests.kafka.differential.pair import DIRECTORY_ID, PROPERTIES, LogPart, Pair, Side
from tests.security.secured_daemon import PLAIN_MODULE, SCRAM_MODULE

ADMIN = "admin"  # the super user
PRINCIPALS = (ADMIN, "alice", "bob")
_CONTROLLER = "controller"  # the user as which a controller logs in
_OF_LISTENER = "listener.name.controller."
_TOKEN_KEY = "the key of all tokens"
_TOKEN_TIMES = ("issueTimestamp", "expirationTimestamp", "maxTimestamp", "expiryTimestamp")
_TEN_MINUTES_MS = 600_000
# APIs that Kafka's controller answers from an image that another thread publishes shortly after the commit.
_PUBLISHED = frozenset({ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_CLUSTER})
_WAIT_S = 2
# The diverging epoch of a replica without a common epoch. Depending on snapshots, an answer has it or not.
_BEGINNING = {"epoch": 0, "endOffset": 0}
_A_SNAPSHOT = "a snapshot"
_FIRST_DYNAMIC = 21  # 3.9-IV0, which knows kraft.version 1
SNAPSHOT_INTERVAL_MS = 2_000
NEWEST_SNAPSHOT = SnapshotId(2**62, 1)  # stands for each side's newest snapshot
_LEARNT_S = 0.5
BRIEF_MS = 5  # such a token has expired before the next request
DELETES_TOPICS = "delete.topic.enable"


def secured_properties() -> dict[str, object]:
    users = " ".join(f'user_{name}="{name}"' for name in (_CONTROLLER, *PRINCIPALS))
    own = f'username="{_CONTROLLER}" password="{_CONTROLLER}"'
    return {
        **PROPERTIES,
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        f"{_OF_LISTENER}sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        f"{_OF_LISTENER}plain.sasl.jaas.config": f"{PLAIN_MODULE} required {own} {users};",
        f"{_OF_LISTENER}scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        "super.users": f"User:{ADMIN};User:{_CONTROLLER}",
        "delegation.token.secret.key": _TOKEN_KEY,
        "metadata.log.max.snapshot.interval.ms": SNAPSHOT_INTERVAL_MS,
        "controller.quorum.append.linger.ms": 0,  # otherwise Kafka delays each write by 25 ms
    }


def shared_hmac(number: int) -> bytes:
    """The HMAC that stands for that of token `number` on both sides."""
    return b"hmac" + bytes(56) + number.to_bytes(4, "big")


class Step(NamedTuple):
    """One request of a principal, without its last `cut` bytes, followed by the `added` ones."""

    principal: str
    request: Message
    version: int
    cut: int = 0
    added: bytes = b""

    def __str__(self) -> str:
        damage = f" without its last {self.cut} bytes" if self.cut else ""
        damage += f" and {self.added!r} behind it" if self.added else ""
        return f"{self.principal}: v{self.version} {self.request!r}{damage}"


class SecuredSide(Side):
    """A side that several principals ask."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.clients: dict[str, Client] = {}
        self.token_count = 0
        self._hmacs: dict[str, bytes] = {}  # HMACs of tokens, by the ids that both sides share
        self._settling = Settling()
        self.newest_snapshot: OffsetAndEpoch | None = None
        self.next_offset = 1  # a fetch from 0 gets the snapshot's id once there is a snapshot

    @property
    def client(self) -> Client:
        return self.connection(ADMIN)

    def connection(self, principal: str) -> Client:
        """The open connection of a principal, after its login."""
        if principal not in self.clients:
            client = Client(HOST, self.port, timeout_s=self.answer_wait_s)
            client.call(ApiVersionsRequest("test", "1"), 4)
            client.call(SaslHandshakeRequest("PLAIN"), 1)
            answer = client.call(SaslAuthenticateRequest(f"\0{principal}\0{principal}".encode()), 2)
            assert answer.error_code == 0, f"{self!r}: {answer!r}"
            self.clients[principal] = client
        return self.clients[principal]

    def disconnect(self) -> None:
        for client in self.clients.values():
            client.close()
        self.clients.clear()

    def send(self, step: Step) -> None:
        """Send the request with its ids translated."""
        client = self.connection(step.principal)
        client.correlation_id += 1
        request = self.translated(step.request)
        parts = encode_request(
            api_key(request), step.version, client.correlation_id, client.client_id, request
        )
        body = b"".join(parts)[4:]
        body = body[: len(body) - step.cut] + step.added
        client.socket.sendall(len(body).to_bytes(4, "big") + body)

    def receive(self, step: Step) -> Message | str:
        """The answer to the sent request, or the error if there is none."""
        client = self.connection(step.principal)
        try:
            _, answer = parse_response(api_key(step.request), step.version, client.receive_frame())
        except (ConnectionError, TimeoutError) as error:
            self.clients.pop(step.principal).close()
            return type(error).__name__
        return answer

    def read_log(self) -> LogPart:
        """The new part of the log, once the controller has applied it."""
        part = super().read_log()
        if part.records and self.controller.kind == "apache":
            self._settling.wait(self.client, (message for _, _, message in part.records), self._hmacs)
        return part

    def learn_ids(self, record: Message) -> None:
        super().learn_ids(record)
        if isinstance(record, DelegationTokenRecord) and record.token_id not in self.ours:
            token_id, hmac = f"token-{self.token_count}", token_hmac(_TOKEN_KEY.encode(), record.token_id)
            self.same(record.token_id, token_id)
            self.same(hmac, shared_hmac(self.token_count))
            self._hmacs[token_id] = hmac
            self.token_count += 1

    def translated(self, request: Message) -> Message:
        """The request with this side's ids and its newest snapshot."""
        copy = super().translated(request)
        if isinstance(copy, FetchSnapshotRequest):
            for partition in (one for topic in copy.topics for one in topic.partitions):
                if partition.snapshot_id == NEWEST_SNAPSHOT and self.newest_snapshot is not None:
                    partition.snapshot_id = SnapshotId(*self.newest_snapshot)
        return copy

    def find_newest_snapshot(self) -> None:
        """Remember the newest complete snapshot that is old enough for the controller to know it."""
        before_s = time() - _LEARNT_S
        names = [
            path.name for path in self.metadata_dir.glob("*.checkpoint") if path.stat().st_mtime < before_s
        ]
        found = map(parse_checkpoint_name, names)
        snapshots = [one for one in found if one is not None and one.offset > 0]
        self.newest_snapshot = max(snapshots, default=None)

    def view(self, answer: Message, version: int, key: int) -> Any:
        """An answer in comparable form; the bytes of a snapshot are compared with those of the file."""
        if not isinstance(answer, FetchSnapshotResponse):
            return super().view(answer, version, key)
        parts = [self._snapshot_part(one) for topic in answer.topics for one in topic.partitions]
        return {**super().view(answer, version, key), "parts": parts}

    def _snapshot_part(self, partition: PartitionSnapshot) -> Any:
        """Remove the bytes and the size from an answer: no two controllers' snapshots have them in common."""
        data, size = bytes(partition.unaligned_records or b""), partition.size
        partition.unaligned_records, partition.size = b"", min(size, 1)
        if partition.error_code:
            return None
        path = self.metadata_dir / checkpoint_name(
            OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        )
        whole = path.read_bytes()
        assert size == len(whole), f"{self!r}: {size} bytes named for {path}"
        end = partition.position + len(data)
        assert data == whole[partition.position : end], f"{self!r}: other bytes than in {path}"
        return "the rest" if end == len(whole) else len(data)

    @property
    def metadata_dir(self) -> Path:
        """The directory with its log and its snapshots."""
        return self.controller.metadata_dir

    def forget_ids(self) -> None:
        """Forget all ids but the directory's, since what they named is deleted, and number from the start."""
        own_directory = self.theirs[DIRECTORY_ID]
        self.ours, self.theirs = {}, {}
        self.same(own_directory, DIRECTORY_ID)
        self.token_count = 0

    def _masked(self, name: str, value: Any) -> Any:
        if name == "snapshotId" and value["endOffset"] > 0:
            return _A_SNAPSHOT
        if isinstance(value, dict):
            value = _without_times(value)
            if value.get("divergingEpoch") == _BEGINNING:
                return {**super()._masked(name, value), "divergingEpoch": None, "snapshotId": _A_SNAPSHOT}
            if value.get("snapshotId", {}).get("endOffset", 0) > 0:
                value = {**value, "divergingEpoch": None}
        elif name in ("expiryTimestampMs", "expiryTimestamp") and isinstance(value, int) and value > 0:
            return "a time"
        return super()._masked(name, value)


def _without_times(fields: dict[str, Any]) -> dict[str, Any]:
    """Give a token's times as spans from its issue, to ten minutes."""
    issued = fields.get("issueTimestamp", fields.get("issueTimestampMs", 0))
    if not isinstance(issued, int) or issued <= 0:
        return fields
    shown = dict(fields)
    for name in _TOKEN_TIMES:
        for key in (name, f"{name}Ms"):
            if key in shown:
                shown[key] = f"issue + {(shown[key] - issued + 30_000) // _TEN_MINUTES_MS}"
    return shown


class SecuredPair(Pair):
    """Both sides, asked at the same time."""

    side_type = SecuredSide
    is_spent = False  # Kafka's controller gave up its leadership, or the logs differ for good
    keeps_topics = False  # the pair cannot delete topics
    sides: list[SecuredSide]  # type: ignore[assignment]

    def play(self, step: Step) -> tuple[list[Any], list[LogPart]]:
        """The answers of both sides in comparable form, and what the request added to their logs."""
        if isinstance(step.request, FetchSnapshotRequest):
            self._find_newest_snapshots()
        for side in self.sides:
            side.send(step)
        answers = [side.receive(step) for side in self.sides]
        parts = [side.read_log() for side in self.sides]
        if any(isinstance(message, DelegationTokenRecord) for _, _, message in parts[0].records):
            sleep(2 * BRIEF_MS / 1000)  # such a token has expired on both sides
        views = [self._view(side, step, answer) for side, answer in zip(self.sides, answers, strict=True)]
        if views[0] != views[1] and api_key(step.request) in _PUBLISHED:
            with suppress(TimeoutError):
                wait_until(lambda: self._is_published(step, views), "Kafka shows it", _WAIT_S, 0.002)
        return views, parts

    def _find_newest_snapshots(self) -> None:
        """Find each side's newest snapshot; as long as one has none, none is used."""
        for side in self.sides:
            side.find_newest_snapshot()
        if not all(side.newest_snapshot for side in self.sides):
            for side in self.sides:
                side.newest_snapshot = None

    def _view(self, side: SecuredSide, step: Step, answer: Message | str) -> Any:
        return side.answer_view(step.request, step.version, answer)

    def _is_published(self, step: Step, views: list[Any]) -> bool:
        """Ask Kafka's controller again. Return whether its answer now equals the other's."""
        self.sides[0].send(step)
        views[0] = self._view(self.sides[0], step, self.sides[0].receive(step))
        return bool(views[0] == views[1])


class Origin(NamedTuple):
    """How a pair begins: metadata.version, whether its configuration names the voters, other properties."""

    level: int
    is_static: bool
    settings: tuple[tuple[str, str | None], ...] = ()  # None removes a property


NEWEST = Origin(mv.LATEST_PRODUCTION, False)
_SETTINGS: tuple[tuple[tuple[str, str | None], ...], ...] = (
    (),
    (("delegation.token.secret.key", None),),
    (("authorizer.class.name", None),),
    (("allow.everyone.if.no.acl.found", "true"),),
    (("unclean.leader.election.enable", "true"), ("min.insync.replicas", "2")),
    ((DELETES_TOPICS, "false"),),
    (("delegation.token.max.lifetime.ms", "7200000"), ("delegation.token.expiry.time.ms", "3600000")),
)


def origin_of(block: int) -> Origin:
    """The origin of the pairs for a block of sequences: for every other block the newest."""
    if block % 2 == 0:
        return NEWEST
    rng = Random(block)
    level = rng.randint(mv.MINIMUM_VERSION, mv.LATEST_PRODUCTION)
    return Origin(level, level < _FIRST_DYNAMIC or rng.random() < 0.5, rng.choice(_SETTINGS))


def started_pair(home: Path, origin: Origin = NEWEST) -> SecuredPair:
    """Start a pair in that folder; the caller must exit it as a context in any case."""
    merged = {**secured_properties(), **dict(origin.settings)}
    properties = {name: value for name, value in merged.items() if value is not None}
    pair = SecuredPair(home, absent=() if origin.is_static else None, properties=properties)
    pair.keeps_topics = properties.get(DELETES_TOPICS) == "false"
    older = origin.level < mv.LATEST_PRODUCTION
    release = ("--release-version", mv.version_name(origin.level)) if older else ()
    try:
        pair.start(*release, registers=mv.allows_controller_registration(origin.level))
    except BaseException:
        pair.__exit__()
        raise
    return pair
