"""The authorizer receives ACLs in slices during a load, and decides by them once all are loaded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from kraftd.acl import AclOperation, AclResourceType
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kraftd.metadata.state import AclState
from kraftd.raft import events as raft_events
from kraftd.replica import replay
from kraftd.replica.acl_publisher import AclPublisher
from kraftd.requests.events import SliceDue
from kraftd.security.authorizer import AuthorizerNotReady, StandardAuthorizer
from kraftd.security.authorizer_settings import AuthorizerSettings
from kraftd.security.principals import Principal
from kraftd.wire.api import ApiKey
from tests.controller_node.harness import Harness

ALICE = Principal("User", "alice")
ACL_COUNT = 3_000
RECORDS_PER_SLICE = 50


class Watched(StandardAuthorizer):
    """An authorizer that notes the number of ACLs in each call."""

    def __init__(self) -> None:
        super().__init__(AuthorizerSettings())
        self.counts: list[int] = []

    def change(self, removed: Iterable[AclState], added: Iterable[AclState]) -> None:
        removed, added = list(removed), list(added)
        self.counts.append(len(removed) + len(added))
        super().change(removed, added)

    def may_read(self, name: str) -> bool:
        return self.allows(ALICE, "127.0.0.1", AclOperation.READ, AclResourceType.TOPIC, name)


def guarded(harness: Harness) -> Watched:
    """Let a controller that has not started pass its ACLs to an authorizer."""
    authorizer = Watched()
    harness.node.boundary._authorizer = authorizer
    harness.node.following._acls = AclPublisher(authorizer)
    harness.node.following._acls.follow(harness.node.image)
    return authorizer


def creation(number: int) -> AclCreation:
    return AclCreation(AclResourceType.TOPIC, f"t{number}", 3, "User:alice", "*", AclOperation.READ, 3)


def test_very_many_acls_are_loaded_in_slices_and_take_effect_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "MAX_RECORDS_PER_CALLBACK", RECORDS_PER_SLICE)
    harness = Harness(tmp_path).start()
    harness.node.boundary._authorizer = allowing()
    for start in range(0, ACL_COUNT, 20):
        request = CreateAclsRequest([creation(number) for number in range(start, start + 20)])
        answer = harness.ask(ApiKey.CREATE_ACLS, 3, request)
        assert {one.error_code for one in answer.results} == {0}
    wanted = DeleteAclsFilter(AclResourceType.TOPIC, "t7", 3, None, None, 1, 1)
    harness.ask(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([wanted]))
    harness.storage.close()

    again = Harness(tmp_path, harness.disk)
    authorizer = guarded(again)
    again.runs_slices_by_itself = False
    again.step(raft_events.Started())
    while not authorizer.loaded:
        with pytest.raises(AuthorizerNotReady):
            authorizer.may_read("t5")
        again.step(SliceDue())
    assert max(authorizer.counts) <= RECORDS_PER_SLICE + 20  # a slice ends with a batch
    assert sum(authorizer.counts) == ACL_COUNT + 1
    assert (
        authorizer.may_read("t5")
        and authorizer.may_read(f"t{ACL_COUNT - 1}")
        and not authorizer.may_read("t7")
    )


def allowing() -> StandardAuthorizer:
    authorizer = StandardAuthorizer(AuthorizerSettings(super_users=frozenset({"User:ANONYMOUS"})))
    authorizer.end_load()
    return authorizer
