"""Steps of a sequence: requests of several principals, valid, at boundaries, malformed, conflicting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kraftd.messages import (
    alter_client_quotas_request,
    broker_registration_request,
    create_acls_request,
    describe_user_scram_credentials_request,
)
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from kraftd.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from kraftd.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraftd.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraftd.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kraftd.messages.sasl_handshake_request import SaslHandshakeRequest
from kraftd.messages.update_features_request import UpdateFeaturesRequest
from kraftd.metadata.features import supported_features
from kraftd.metadata.image import Image
from kraftd.metadata.metadata_version import LATEST_PRODUCTION, METADATA_VERSION
from kraftd.wire.api import valid_versions
from kraftd.wire.message import Message
from kraftd.wire.table import api_key
from tests.kafka.conformance.settling import FORWARDED, envelope
from tests.kafka.conformance.sides import ADMIN, BRIEF_MS, PRINCIPALS, Step, shared_hmac
from tests.kafka.conformance.valid_but_one import ValidButOne
from tests.kafka.differential import access_requests
from tests.kafka.differential.requests import BROKERS, TOPICS, RandomRequests, directories

_SENDERS = (ADMIN, ADMIN, ADMIN, "alice", "alice", "bob")
_HOUR_MS = 3_600_000
_OWNERS = (("", ""), ("", ""), (None, None), ("User", ""), ("User", "bob"), ("User", "alice"))
_THROTTLED, _TOKENS = 0.15, 0.2  # of the sequences
_RENEWERS = (("User", "alice"), ("User", "bob"), ("User", ""), ("Group", "a"))
_DELETE = 1  # an operation of IncrementalAlterConfigs
_FITTING: tuple[Callable[[Any], Any], ...] = (
    *[ValidButOne.wide_topic] * 4,
    *[ValidButOne.propose_isr] * 8,
    *[ValidButOne.elect] * 4,
    *[ValidButOne.move] * 5,
    *[ValidButOne.assign] * 2,
    *[ValidButOne.beat] * 6,
    *[ValidButOne.revive] * 2,
    *[ValidButOne.come_back] * 3,
    *[ValidButOne.lose_directory] * 3,
    *[ValidButOne.delete_topics] * 2,
    ValidButOne.retire,
    *[ValidButOne.configured] * 6,
    *[ValidButOne.configured_whole] * 2,
    *[ValidButOne.level_feature] * 3,
    *[ValidButOne.fetch_one] * 2,
    *[ValidButOne.fetch_newest_snapshot] * 2,
)
_OTHERWISE = (
    access_requests.delegation_token,
    RandomRequests.heartbeat,
    RandomRequests.update_features,
    RandomRequests.delete_topics,
)


class Steps(ValidButOne):
    """Makes the steps of one sequence for a cluster whose image the caller keeps current."""

    forwarded = ("admin", "alice", "alice", "bob")

    def __init__(self, seed: int, image: Image, cluster_id: str) -> None:
        super().__init__(seed, image, cluster_id)
        self.begins_at = image.offset
        self._first: Callable[[Any], Any] | None = self.KINDS[seed % len(self.KINDS)]

    # -- what a sequence begins with

    def arrivals(self) -> Iterator[Step]:
        """Brokers register and are unfenced; ordinary users get permissions."""
        for broker_id in self.random.sample(BROKERS, self.random.randint(1, len(BROKERS))):
            yield admin(registration(broker_id, self.cluster_id))
            heartbeat = BrokerHeartbeatRequest(
                broker_id, self.image.brokers[broker_id].epoch, self.log_end - 1
            )
            yield admin(heartbeat)
        for _ in range(self.random.randint(0, 2)):
            yield admin(self._permissions())
        if self.odds(_THROTTLED):
            yield from self._throttled()
        if self.odds(_TOKENS):
            yield from self._life_of_a_token()

    def _throttled(self) -> Iterator[Step]:
        """Forwarded requests beyond a mutation quota that time does not refill.

        Once Kafka's controller has published ACLs that were created after the quota, it has published the
        quota.
        """
        m = alter_client_quotas_request
        quota = m.OpData("controller_mutation_rate", 1e-3, False)
        entry = m.EntryData([m.EntityData("client-id", FORWARDED)], [quota])
        yield admin(m.AlterClientQuotasRequest([entry]))
        yield admin(self._permissions())
        for make in (self.create_topics, self.create_topics, self.create_topics, self.create_partitions):
            yield admin(envelope(ADMIN, make(), self.one((0, 1, 2))))

    def _life_of_a_token(self) -> Iterator[Step]:
        """A token, and requests to renew or expire it: by its owner or another user, early or too late."""
        owner = self.one(PRINCIPALS)
        life = self.one((-1, 24 * _HOUR_MS, BRIEF_MS))
        renewers = [CreatableRenewers("User", self.one(PRINCIPALS))] * self.one((0, 1))
        known = set(self.image.delegation_tokens)
        yield Step(owner, CreateDelegationTokenRequest("", "", renewers, life), self.one((2, 3)))
        for hmac in map(self._hmac, self.image.delegation_tokens.keys() - known):
            for _ in range(self.one((1, 2, 3))):
                request = self.one((self._renewal, self._expiry))(hmac)
                yield Step(self.one((owner, owner, owner, *PRINCIPALS)), request, self.one((1, 2)))

    def _permissions(self) -> Message:
        m = create_acls_request
        acls = []
        for _ in range(self.random.randint(1, 4)):
            type, names = self.one(
                ((2, (*TOPICS, "*")), (4, ("kafka-cluster",)), (4, ("kafka-cluster",)), (7, ("User:bob",)))
            )
            pattern = self.one((3, 3, 4)) if type == 2 else 3
            operation = self.one((2, 5, 5, 6, 7, 7, 8, 9, 9, 10, 11, 13))
            acls.append(
                m.AclCreation(
                    type,
                    self.one(names),
                    pattern,
                    self.one(("User:alice", "User:bob")),
                    self.one(("*", "*", "127.0.0.1", "1.2.3.4")),
                    operation,
                    self.one((3, 3, 3, 2)),
                )
            )
        return m.CreateAclsRequest(acls)

    # -- a step

    def step(self) -> Step:
        """The next step; some requests are in an Envelope, some are cut short."""
        kind = self._first or self.one(self.WEIGHTED)
        self._first = None
        request, version = self.next(kind)
        principal = ADMIN if kind in _FITTING and self.odds(0.9) else self.one(_SENDERS)
        if self.odds(0.02):
            return Step(principal, request, version, cut=self.random.randint(1, 12))
        return Step(principal, request, version)

    # -- requests that only secured controllers get

    def token(self) -> Message:
        """Create, renew or expire a token: it expires at once or not within the sequence."""
        hmacs = [self._hmac(one) for one in self.image.delegation_tokens]
        if self.odds(0.6 if not hmacs else 0.3):
            renewers = [
                CreatableRenewers(
                    *self.one((("User", "alice"), ("User", "bob"), ("User", ""), ("Group", "a")))
                )
                for _ in range(self.one((0, 0, 1, 2)))
            ]
            owner = self.one(_OWNERS)
            life = self.one((-1, -1, 24 * _HOUR_MS, 900 * _HOUR_MS, BRIEF_MS, BRIEF_MS, 0, -2))
            return CreateDelegationTokenRequest(*owner, renewers, life)
        hmac = self.one((*hmacs, *hmacs, b"", bytes(64)))
        return self.one((self._renewal, self._expiry))(hmac)

    def _hmac(self, token_id: str) -> bytes:
        return shared_hmac(int(token_id.rpartition("-")[2]))

    def _renewal(self, hmac: bytes) -> Message:
        return RenewDelegationTokenRequest(hmac, self.one((-1, _HOUR_MS, BRIEF_MS, 2**62, -2, 0)))

    def _expiry(self, hmac: bytes) -> Message:
        return ExpireDelegationTokenRequest(hmac, self.one((-1, _HOUR_MS, BRIEF_MS, 0, 2**62)))

    def by_token(self) -> Message:
        """Forwarded for a user that logged in with a token."""
        make = self.one((self.token, self.token, self.wide_topic, self.configured))
        return envelope(self.one(self.forwarded), make(), by_token=True)

    def update_features(self) -> Message:
        """Upgrades of metadata.version are only validated: a real one makes a controller register again."""
        request = super().update_features()
        assert isinstance(request, UpdateFeaturesRequest)
        upgrades = any(one.feature == METADATA_VERSION for one in request.feature_updates)
        request.validate_only |= upgrades and self.image.metadata_version < LATEST_PRODUCTION
        return request

    def heartbeat(self) -> Message:
        """Without offline directories.

        Kafka's controller may search these for partitions of topics that an earlier sequence deleted, and
        then gives up its leadership.
        """
        request = super().heartbeat()
        assert isinstance(request, BrokerHeartbeatRequest)
        request.offline_log_dirs = ()
        return request

    def describe_tokens(self) -> Message:
        return DescribeDelegationTokenRequest(self.one((None, [])))

    def describe_scram(self) -> Message:
        """Kafka's controller never answers for null users."""
        m = describe_user_scram_credentials_request
        return m.DescribeUserScramCredentialsRequest([m.UserName("alice")] * self.one((0, 1, 2)))

    def sasl(self) -> Message:
        return self.one((SaslHandshakeRequest("PLAIN"), SaslAuthenticateRequest(b"\0alice\0alice")))

    WEIGHTED: tuple[Callable[[Any], Any], ...] = (
        *(one for one in RandomRequests.WEIGHTED if one not in _OTHERWISE),
        *[heartbeat] * 14,
        *[token] * 4,
        by_token,
        *[update_features] * 2,
        describe_tokens,
        describe_scram,
        sasl,
        *_FITTING,
    )
    KINDS = tuple(dict.fromkeys(WEIGHTED))  # each sequence begins with the next kind


def admin(request: Message) -> Step:
    """The super user's step with that request in its newest version."""
    return Step(ADMIN, request, valid_versions(api_key(request))[1])


def registration(broker_id: int, cluster_id: str) -> Message:
    """The first registration of a broker of the cluster."""
    m = broker_registration_request
    return m.BrokerRegistrationRequest(
        broker_id,
        cluster_id,
        b"\x44" * 12 + bytes([0, 0, broker_id, 0]),
        [m.Listener("PLAINTEXT", "localhost", 9000 + broker_id)],
        [m.Feature(name, *span) for name, span in supported_features().items()],
        None,
        False,
        directories(broker_id),
    )
