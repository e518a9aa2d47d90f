"""The wall clock of a controller is set while it runs: by a preloaded library, as `date` sets a machine's."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.api_versions_response import ApiVersionsResponse
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from kraftd.messages.broker_registration_response import BrokerRegistrationResponse
from kraftd.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraftd.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.messages.create_topics_response import CreateTopicsResponse
from kraftd.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraftd.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import iter_batches
from kraftd.wire.error_code import ErrorCode
from testkit.process import wait_until
from testkit.secured_client import Client, Unreachable
from tests.faults.clocks import SteppedClock, lacking
from tests.runtime.daemon_process import CLUSTER_ID, DaemonProcess
from tests.security.secured_daemon import PLAIN_MODULE, connect, plain

pytestmark = pytest.mark.skipif(lacking() is not None, reason=f"not run: {lacking()}")
HOUR_MS = 3_600_000
SESSION_MS = 5_000  # longer than a busy machine takes for the requests between two heartbeats
JAAS = f'{PLAIN_MODULE} required username="admin" password="secret" user_admin="secret";'


class SteppedDaemon(DaemonProcess):
    """A controller with its own wall clock, behind SASL, so that it gives delegation tokens."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = SteppedClock(home)
        self.set_clock = clock.set
        super().__init__(
            home,
            sasl__mechanism__controller__protocol="PLAIN",
            listener__name__controller__plain__sasl__jaas__config=JAAS,
            sasl__enabled__mechanisms="PLAIN",
            delegation__token__secret__key="a key",
            broker__session__timeout__ms=SESSION_MS,
            kraftd__audit__log=home / "audit.log",
        )
        text = self.properties.read_text().replace("CONTROLLER:PLAINTEXT,", "CONTROLLER:SASL_PLAINTEXT,")
        self.properties.write_text(text)
        self.format()
        for name, value in clock.environment.items():
            monkeypatch.setenv(name, value)

    def admin(self) -> Client:
        return connect(self.port, login=plain("admin", "secret"))

    def audit(self) -> str:
        return (self.home / "audit.log").read_text()

    def last_stamp_ahead_ms(self) -> float:
        """How far the stamp of the last batch is ahead of this process's clock."""
        (segment,) = (self.home / "data").rglob("*.log")
        stamps = [one.header.max_timestamp_ms for one in iter_batches(segment.read_bytes())]
        return stamps[-1] - time.time() * 1000


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SteppedDaemon]:
    daemon = SteppedDaemon(tmp_path, monkeypatch)
    daemon.set_clock(-HOUR_MS)
    daemon.begin()
    yield daemon
    daemon.stop()


def registered(client: Client) -> int:
    """Register a broker; return its epoch."""
    features = client.ask(ApiKey.API_VERSIONS, ApiVersionsRequest("test", "1"), ApiVersionsResponse)
    request = BrokerRegistrationRequest(
        broker_id=9,
        cluster_id=CLUSTER_ID,
        incarnation_id=uuid.uuid4().bytes,
        listeners=[Listener("PLAINTEXT", "127.0.0.1", 1009, 0)],
        features=[Feature(one.name, one.min_version, one.max_version) for one in features.supported_features],
        rack=None,
        log_dirs=(uuid.uuid4().bytes,),
    )
    answer = client.ask(ApiKey.BROKER_REGISTRATION, request, BrokerRegistrationResponse)
    assert answer.error_code == ErrorCode.NONE
    return answer.broker_epoch


def create(client: Client, name: str) -> None:
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1)], 5000)
    (topic,) = client.ask(ApiKey.CREATE_TOPICS, request, CreateTopicsResponse).topics
    assert topic.error_code == ErrorCode.NONE


def token(client: Client, lifetime_ms: int) -> CreateDelegationTokenResponse:
    request = CreateDelegationTokenRequest(max_lifetime_ms=lifetime_ms)
    return client.ask(ApiKey.CREATE_DELEGATION_TOKEN, request, CreateDelegationTokenResponse)


def renewal_error(client: Client, created: CreateDelegationTokenResponse) -> int:
    request = RenewDelegationTokenRequest(created.hmac, -1)
    return client.ask(ApiKey.RENEW_DELEGATION_TOKEN, request, RenewDelegationTokenResponse).error_code


def decides(daemon: SteppedDaemon) -> bool:
    try:
        with daemon.admin() as admin:
            return token(admin, 1).error_code == ErrorCode.NONE
    except Unreachable:
        return False


def is_fenced(client: Client, epoch: int) -> bool:
    request = BrokerHeartbeatRequest(9, epoch, epoch)
    answer = client.ask(ApiKey.BROKER_HEARTBEAT, request, BrokerHeartbeatResponse)
    assert answer.error_code == ErrorCode.NONE
    return answer.is_fenced


def test_a_controller_that_starts_an_hour_behind_follows_the_clock_when_it_is_set(
    daemon: SteppedDaemon,
) -> None:
    wait_until(lambda: decides(daemon), "it decides")
    with daemon.admin() as admin:
        epoch = registered(admin)
        wait_until(lambda: not is_fenced(admin, epoch), "the broker is unfenced")
        create(admin, "early")
        assert abs(daemon.last_stamp_ahead_ms() + HOUR_MS) < 10_000
        short, long = token(admin, HOUR_MS // 2), token(admin, 2 * HOUR_MS)
        for ahead_ms, error in ((0, ErrorCode.DELEGATION_TOKEN_EXPIRED), (-2 * HOUR_MS, ErrorCode.NONE)):
            daemon.set_clock(ahead_ms)
            create(admin, f"topic{ahead_ms}")
            assert abs(daemon.last_stamp_ahead_ms() - ahead_ms) < 10_000
            assert (renewal_error(admin, short), renewal_error(admin, long)) == (error, ErrorCode.NONE)
            assert not is_fenced(admin, epoch)
    assert "broker fenced" not in daemon.audit()
    wait_until(lambda: "broker fenced" in daemon.audit(), "the broker's session ends", 30)
    events = [json.loads(line) for line in daemon.audit().splitlines()]
    steps_ms = [one["by_ms"] for one in events if one["event"] == "wall clock stepped"]
    assert [round(one / HOUR_MS, 2) for one in steps_ms] == [1, -2]
    assert sum(line["event"].startswith("the wall clock stepped") for line in daemon.lines()) == 2
    assert not any(one["event"] == "leadership lost" for one in events)
