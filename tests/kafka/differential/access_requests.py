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


class Dice(Protocol):
    """The random draws that these requests need."""

    def odds(self, chance: float) -> bool: ...
    def one(self, options: tuple[T, ...]) -> T: ...
    def some(self, options: tuple[T, ...], most: int) -> list[T]: ...


def create_acls(dice: Dice) -> Message:
    m = create_acls_request
    acls = []
    for _ in range(dice.one((0, 1, 1, 2, 3))):
        acl = m.AclCreation(
            dice.one((2, 2, 3, 5, 6, 7)),
            dice.one(NAMES),
            dice.one((3, 4)),
            dice.one(PRINCIPALS),
            dice.one(HOSTS),
            dice.one(tuple(range(2, 16))),
            dice.one((2, 3)),
        )
        if dice.odds(0.15):
            acl.resource_type = 4  # the cluster has this one name
        if dice.odds(0.05):
            acl.resource_name = ""
        if dice.odds(0.05):
            acl.principal = dice.one(("alice", "", "x" * 300))
        acls.append(acl)
    return m.CreateAclsRequest(acls)


def _filter(dice: Dice) -> tuple[int, str | None, int, str | None, str | None, int, int]:
    return (
        dice.one((1, 1, 2, 2, 3, 4, 5, 6, 7)),
        dice.one((None, None, *NAMES, "abcd", "")),
        dice.one((1, 1, 2, 2, 3, 4)),
        dice.one((None, None, None, *PRINCIPALS)),
        dice.one((None, None, None, *HOSTS)),
        dice.one((1, 1, 1, 2, 3, 4, 7, 8)),
        dice.one((1, 1, 2, 3)),
    )


def delete_acls(dice: Dice) -> Message:
    m = delete_acls_request
    filters = [m.DeleteAclsFilter(*_filter(dice)) for _ in range(dice.one((0, 1, 1, 2, 3)))]
    return m.DeleteAclsRequest(filters)


def describe_acls(dice: Dice) -> Message:
    return DescribeAclsRequest(*_filter(dice))


def alter_client_quotas(dice: Dice) -> Message:
    entries = {}
    for _ in range(dice.one((0, 1, 1, 2, 3))):
        kinds = dice.one(
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
        entity = {kind: dice.one(names.get(kind, (None, *USERS, ""))) for kind in kinds}
        # Mutation rates that time never refills, or that no request uses up: both sides then see the same.
        # The former are only for forwarded requests: Kafka mutes a connection of a throttled client.
        rates = NEVER_USED_UP if None in entity.values() else (*NEVER_USED_UP, 1e-4, 1e-4, 1e-4)
        ops = [
            quotas.OpData(
                key,
                dice.one(rates if key == "controller_mutation_rate" else VALUES),
                dice.odds(0.3),
            )
            for key in dict.fromkeys(dice.some(KEYS, 2))
        ] * (not dice.odds(0.03))
        if ops and dice.odds(0.05):
            ops.append(ops[0])
        named = [quotas.EntityData(kind, name) for kind, name in entity.items()]
        entries[tuple(sorted(entity.items(), key=repr))] = quotas.EntryData(named, ops)
    return quotas.AlterClientQuotasRequest(list(entries.values()), dice.odds(0.1))


def alter_scram(dice: Dice) -> Message:
    deletions = [
        scram.ScramCredentialDeletion(dice.one((*USERS, "")), dice.one((1, 2, 2, 0, 3)))
        for _ in range(dice.one((0, 0, 1, 2)))
    ]
    upsertions = [
        scram.ScramCredentialUpsertion(
            dice.one((*USERS, *USERS, "")),
            dice.one((1, 1, 2, 2, 0, 9)),
            dice.one((4096, 4096, 8192, 16384, 4095, 16385, -1, 0)),
            dice.one((b"salt", b"")),
            dice.one((b"salted", bytes(64))),
        )
        for _ in range(dice.one((0, 1, 1, 2)))
    ]
    return scram.AlterUserScramCredentialsRequest(deletions, upsertions)


def delegation_token(dice: Dice) -> Message:
    """Over PLAINTEXT these are refused, whatever they contain."""
    create = CreateDelegationTokenRequest(
        *dice.one(((None, None), ("User", ""), ("User", "bob"))),
        [CreatableRenewers(dice.one(("User", "Group")), "carol")],
        dice.one((-1, 0, 1000)),
    )
    renew = RenewDelegationTokenRequest(dice.one((b"", bytes(64))), dice.one((-1, 1000)))
    expire = ExpireDelegationTokenRequest(dice.one((b"", bytes(64))), dice.one((-1, 1000)))
    return dice.one((create, renew, expire))
