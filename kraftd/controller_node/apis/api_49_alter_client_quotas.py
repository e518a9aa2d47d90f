"""AlterClientQuotas (49), v0-1: the quotas of users, clients and addresses (KIP-546, KIP-612).

`controller.quotas.alter` decides, and has the contract. Here a sender without the right is refused undecoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.acl import AclOperation, AclResourceType
from kraftd.controller.quotas.alter import alter_client_quotas
from kraftd.messages import alter_client_quotas_request as requested
from kraftd.messages.alter_client_quotas_response import AlterClientQuotasResponse, EntityData, EntryData
from kraftd.requests.unread_refusals import UnreadRefusal
from kraftd.wire.engine import Repeated
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call

_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_USER = "user"
UNREAD = UnreadRefusal(
    ("entries",),
    "entity",
    lambda name: requested.AlterClientQuotasRequest(
        [requested.EntryData([requested.EntityData(_USER, name)], [])]
    ),
    AlterClientQuotasResponse,
    "entries",
    lambda name: EntryData(_DENIED, _DENIED.message, [EntityData(_USER, name)]),
    _DENIED,
    AclOperation.ALTER_CONFIGS,
    AclResourceType.CLUSTER,
    repeated=Repeated.KEPT,
)


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, alter_client_quotas.begin)
