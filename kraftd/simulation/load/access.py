"""Administrators' requests about access: ACLs, SCRAM users and delegation tokens are made and removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraftd.acl import AclOperation, AclPatternType, AclPermission, AclResourceType
from kraftd.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.create_delegation_token_request import CreateDelegationTokenRequest
from kraftd.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kraftd.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraftd.simulation.checkers.control.access import AccessChecker, AccessOperation
from kraftd.simulation.checkers.control.controllers import NOT_DECIDED
from kraftd.simulation.checkers.control.records import RecordChecker
from kraftd.simulation.processes.process import Process
from kraftd.simulation.protocols import World
from kraftd.simulation.randomness import SeededRandomness
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message

NAMES = ("orders", "payments", "events")
USERS = ("alice", "bob")
SCRAM_SHA_512 = 2
Then = Callable[[Any], None]
SendRequest = Callable[[Process, str, Message, int, Then], None]
# Pattern type, principal, host, operation and permission of each ACL: only the names differ.
_RULE = AclPatternType.PREFIXED, "User:alice", "*", AclOperation.READ, AclPermission.ALLOW


class AccessOperations:
    """The acts of a workload, and their checks."""

    def __init__(
        self,
        world: World,
        rng: SeededRandomness,
        records: RecordChecker,
        any_process: Callable[[], Process | None],
        send_request: SendRequest,
    ) -> None:
        self.world = world
        self.rng = rng
        self.checker = AccessChecker(world, records)
        self._any_process = any_process
        self._send_request = send_request
        self.acts: dict[str, Callable[[], bool]] = {
            "create acl": self._create_acl,
            "delete acl": self._delete_acl,
            "set user": self._set_user,
            "delete user": self._delete_user,
            "create token": self._create_token,
            "expire token": self._expire_token,
        }
        self.table = ["create acl", "delete acl", "set user", "delete user"] * 2
        self.table += ["create token", "expire token"]
        self._tokens: list[tuple[str, bytes]] = []  # id and HMAC of tokens without a request to expire

    def _create_acl(self) -> bool:
        name = self.rng.choice(NAMES)
        request = CreateAclsRequest([AclCreation(AclResourceType.TOPIC, name, *_RULE)])
        return self._change(f"acl {name}", True, request, 3, lambda answer: answer.results[0])

    def _delete_acl(self) -> bool:
        name = self.rng.choice(NAMES)
        request = DeleteAclsRequest([DeleteAclsFilter(AclResourceType.TOPIC, name, *_RULE)])
        return self._change(f"acl {name}", False, request, 3, lambda answer: answer.filter_results[0])

    def _set_user(self) -> bool:
        name = self.rng.choice(USERS)
        upsertion = ScramCredentialUpsertion(name, SCRAM_SHA_512, 4096, bytes(16), bytes(64))
        request = AlterUserScramCredentialsRequest([], [upsertion])
        return self._change(f"user {name}", True, request, 0, lambda answer: answer.results[0])

    def _delete_user(self) -> bool:
        name = self.rng.choice(USERS)
        request = AlterUserScramCredentialsRequest([ScramCredentialDeletion(name, SCRAM_SHA_512)], [])
        return self._change(f"user {name}", False, request, 0, lambda answer: answer.results[0])

    def _change(
        self, of: str, makes: bool, message: Message, version: int, result: Callable[[Any], Any]
    ) -> bool:
        process = self._any_process()
        if process is None:
            return False
        operation = AccessOperation(of, makes, self.world.schedule.now_us)
        self.checker.begun(operation)

        def then(answer: Any) -> None:
            if answer is None:
                return
            one = result(answer)
            if one.error_code in NOT_DECIDED:
                return
            if one.error_code == ErrorCode.RESOURCE_NOT_FOUND:
                self.checker.done(operation, found=False)
            elif one.error_code:
                self.checker.refused(operation)
            elif makes:
                self.checker.done(operation, found=None)
            else:
                self.checker.done(operation, found=bool(getattr(one, "matching_acls", True)))

        self._send_request(process, "change access", message, version, then)
        return True

    def _create_token(self) -> bool:
        process = self._any_process()
        if process is None:
            return False

        def then(answer: Any) -> None:
            if answer is not None and not answer.error_code:
                self.checker.token_answered(answer.token_id, exists=True)
                self._tokens.append((answer.token_id, answer.hmac))

        self._send_request(
            process, "change access", CreateDelegationTokenRequest(max_lifetime_ms=-1), 3, then
        )
        return True

    def _expire_token(self) -> bool:
        process = self._any_process()
        if process is None or not self._tokens:
            return False
        token_id, hmac = self._tokens.pop()

        def then(answer: Any) -> None:
            if answer is not None and not answer.error_code:
                self.checker.token_answered(token_id, exists=False)

        self._send_request(process, "change access", ExpireDelegationTokenRequest(hmac, -1), 2, then)
        return True

    def at_rest(self) -> None:
        """Check that the answers fit what is committed."""
        newest = self.world.reference.newest
        if newest is None or newest.waiting is not None:
            return
        image = newest.image
        known = {f"acl {acl.resource_name}" for acl in image.acls.values()}
        known |= {f"user {name}" for _, name in image.scram}
        self.checker.at_rest(known)
        for host in self.world.cluster.hosts.values():
            self.checker.authorizer_at_rest(host.process)
