"""Large requests that brokers send each other about partitions and transactions, which wait for no allowance.

A follower that waits behind the work of clients leaves the ISR, and a marker that waits keeps consumers from
reading on. All brokers of a cluster often have one principal, and clients on a broker's host its address.
"""

from __future__ import annotations

from kraftd.acl import CLUSTER_NAME, AclOperation, AclResourceType
from kraftd.requests.call import Call
from kraftd.security.authorizer import Authorizer, AuthorizerNotReady
from kraftd.wire.api import ApiKey

_APIS = frozenset((ApiKey.FETCH, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.WRITE_TXN_MARKERS))


def is_between_brokers(call: Call, authorizer: Authorizer | None) -> bool:
    """Return whether a broker may have sent this request to another, before it is decoded.

    Without an authorizer any client may act as a broker.
    """
    if call.key not in _APIS:
        return False
    if authorizer is None:
        return True
    try:
        return authorizer.allows(
            call.principal, call.host, AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME
        )
    except AuthorizerNotReady:
        return False
