"""AlterUserScramCredentials (51), v0: set and delete SCRAM credentials of users (KIP-554).

Authorization: ALTER on the cluster. Sent by: admin clients. Answered after commit. Errors, per user:
DUPLICATE_RESOURCE, RESOURCE_NOT_FOUND, UNACCEPTABLE_CREDENTIAL, UNSUPPORTED_SASL_MECHANISM,
UNSUPPORTED_VERSION (before metadata.version 3.5-IV2).
Differs from Apache Kafka: an empty salted password is UNACCEPTABLE_CREDENTIAL, not UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.scram.alter import alter_user_scram_credentials

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    node.decisions.decide(call, alter_user_scram_credentials.begin)
