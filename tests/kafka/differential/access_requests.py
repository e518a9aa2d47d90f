"""Random requests about ACLs, client quotas, SCRAM users and delegation tokens.

They leave out what the two controllers answer differently on purpose: undefined numbers, entities named twice
in a request, host names and empty passwords. Left out too are APIs that Kafka's controllers list and do not
serve.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from kraftd.messages import alter_client_quotas_request as quotas
from kraftd.messages import alter_user_scram_credentials_request as scram
from kraftd.messages import create_acls_request, delete_acls_request
from kraftd.messages.create_delegation_token_request import CreatableRenewers, CreateDelegationTokenRequest
from kraftd.messages.describe_acls_request import DescribeAclsRequest
from kraftd.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraftd.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraftd.wire.message import Message

T = TypeVar("T")
NAMES = ("a", "ab", "abc", "*", "kafka-cluster")
PRINCIPALS = ("User:alice", "User:bob", "User:*", "Group:a")
HOSTS = ("*", "127.0.0.1", "::1", "")
USERS = ("alice", "bob", "ünï", "a=b,c")
CLIENTS = ("forwarded", "forwarded", "alice")  # the first two are that of forwarded requests
KEYS = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
    "no_such_rate",
)
VALUES = (1.0, 1.0, 0.5, 1000.0, 1e300, float(2**31), float("inf"), 0.0, -1.0, 1.0000001)

NEVER_USED_UP = (1e12, 0.0, -1.0)


class Randomness(Protocol):
    """The random draws that these requests need."""

    def odds(self, chance: float) -> bool: ...
    def one(self, options: tuple[T, ...]) -> T: ...
    def some(self, options: tuple[T, ...], most: int) -> list[T]: ...


def create_acls(rng: Randomness) -> Message:
    m = create_acls_request
    acls = []
    for _ in range(rng.one((0, 1, 1, 2, 3))):
        acl = m.AclCreation(
            rng.one((2, 2, 3, 5, 6, 7)),
            rng.one(NAMES),
            rng.one((3, 4)),
            rng.one(PRINCIPALS),
            rng.one(HOSTS),
            rng.one(tuple(range(2, 16))),
            rng.one((2, 3)),
        )
        if rng.odds(0.15):
            acl.resource_type = 4  # the cluster has this one name
        if rng.odds(0.05):
            acl.resource_name = ""
        if rng.odds(0.05):
            acl.principal = rng.one(("alice", "", "x" * 300))
        acls.append(acl)
    return m.CreateAclsRequest(acls)


def _filter(rng: Randomness) -> tuple[int, str | None, int, str | None, str | None, int, int]:
    return (
        rng.one((1, 1, 2, 2, 3, 4, 5, 6, 7)),
        rng.one((None, None, *NAMES, "abcd", "")),
        rng.one((1, 1, 2, 2, 3, 4)),
        rng.one((None, None, None, *PRINCIPALS)),
        rng.one((None, None, None, *HOSTS)),
        rng.one((1, 1, 1, 2, 3, 4, 7, 8)),
        rng.one((1, 1, 2, 3)),
    )


def delete_acls(rng: Randomness) -> Message:
    m = delete_acls_request
    filters = [m.DeleteAclsFilter(*_filter(rng)) for _ in range(rng.one((0, 1, 1, 2, 3)))]
    return m.DeleteAclsRequest(filters)


def describe_acls(rng: Randomness) -> Message:
    return DescribeAclsRequest(*_filter(rng))


def alter_client_quotas(rng: Randomness) -> Message:
    entries = {}
    for _ in range(rng.one((0, 1, 1, 2, 3))):
        kinds = rng.one(
            (
                ("user",),
                ("client-id",),
                ("user", "client-id"),
                ("ip",),
                ("ip",),
                (),
                ("group",),
                ("ip", "user"),
            )
        )
        names = {"ip": (None, "127.0.0.1", "::1", ""), "client-id": (None, *CLIENTS, "")}
        entity = {kind: rng.one(names.get(kind, (None, *USERS, ""))) for kind in kinds}
        # Mutation rates that time never refills, or that no request uses up: both sides then see the same.
        # The former are only for forwarded requests: Kafka mutes a connection of a throttled client.
        rates = NEVER_USED_UP if None in entity.values() else (*NEVER_USED_UP, 1e-4, 1e-4, 1e-4)
        ops = [
            quotas.OpData(
                key,
                rng.one(rates if key == "controller_mutation_rate" else VALUES),
                rng.odds(0.3),
            )
            for key in dict.fromkeys(rng.some(KEYS, 2))
        ] * (not rng.odds(0.03))
        if ops and rng.odds(0.05):
            ops.append(ops[0])
        named = [quotas.EntityData(kind, name) for kind, name in entity.items()]
        entries[tuple(sorted(entity.items(), key=repr))] = quotas.EntryData(named, ops)
    return quotas.AlterClientQuotasRequest(list(entries.values()), rng.odds(0.1))


def alter_scram(rng: Randomness) -> Message:
    deletions = [
        scram.ScramCredentialDeletion(rng.one((*USERS, "")), rng.one((1, 2, 2, 0, 3)))
        for _ in range(rng.one((0, 0, 1, 2)))
    ]
    upsertions = [
        scram.ScramCredentialUpsertion(
            rng.one((*USERS, *USERS, "")),
            rng.one((1, 1, 2, 2, 0, 9)),
            rng.one((4096, 4096, 8192, 16384, 4095, 16385, -1, 0)),
            rng.one((b"salt", b"")),
            rng.one((b"salted", bytes(64))),
        )
        for _ in range(rng.one((0, 1, 1, 2)))
    ]
    return scram.AlterUserScramCredentialsRequest(deletions, upsertions)


def delegation_token(rng: Randomness) -> Message:
    """Over PLAINTEXT these are refused, whatever they contain."""
    create = CreateDelegationTokenRequest(
        *rng.one(((None, None), ("User", ""), ("User", "bob"))),
        [CreatableRenewers(rng.one(("User", "Group")), "carol")],
        rng.one((-1, 0, 1000)),
    )
    renew = RenewDelegationTokenRequest(rng.one((b"", bytes(64))), rng.one((-1, 1000)))
    expire = ExpireDelegationTokenRequest(rng.one((b"", bytes(64))), rng.one((-1, 1000)))
    return rng.one((create, renew, expire))
