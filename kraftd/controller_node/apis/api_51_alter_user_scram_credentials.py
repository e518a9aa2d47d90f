"""AlterUserScramCredentials (51), v0: set and delete SCRAM credentials of users (KIP-554).

`controller.scram.alter` decides, and has the contract. Here a sender without the right is refused undecoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.scram.alter import alter_user_scram_credentials
from kraftd.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from kraftd.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kraftd.requests.unread_refusals import UnreadRefusal
from kraftd.wire.engine import Repeated
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call

_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
UNREAD = UnreadRefusal(
    ("deletions", "upsertions"),
    "name",
    lambda name: AlterUserScramCredentialsRequest([ScramCredentialDeletion(name)]),
    AlterUserScramCredentialsResponse,
    "results",
    lambda name: AlterUserScramCredentialsResult(name, _DENIED, _DENIED.message),
    _DENIED,
    AclOperation.ALTER,
    AclResourceType.CLUSTER,
    repeated=Repeated.DROPPED,
)


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, alter_user_scram_credentials.begin)
