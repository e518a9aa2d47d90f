"""DescribeClientQuotas (48), v0-1: the quotas whose entities a filter matches (KIP-546).

Authorization: DESCRIBE_CONFIGS on the cluster. Sent by: admin clients. Answered from committed metadata, in
several event loop callbacks if it is long. Errors: CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST for a
filter that cannot be, UNSUPPORTED_VERSION for an unknown type of entity. Differs from a broker: nowhere.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING

from kraftd.answers.operations import check_may_describe_configs, may_describe_configs
from kraftd.controller.quotas.describe import describe_client_quotas
from kraftd.messages.describe_client_quotas_response import DescribeClientQuotasResponse
from kraftd.requests.unread_refusals import WholeRefusal

if TYPE_CHECKING:
    from kraftd.answers.node import AnsweringNode
    from kraftd.requests.call import Call


def handle(node: AnsweringNode, call: Call) -> None:
    check_may_describe_configs(node, call)
    if node.knows_metadata(call):
        node.answer_in_slices(call, describe(node, call))


def unread(node: AnsweringNode, call: Call) -> WholeRefusal | None:
    """How to refuse the whole request of a client that may see no configs."""
    if may_describe_configs(node, call):
        return None
    return WholeRefusal(partial(check_may_describe_configs, node))


def describe(node: AnsweringNode, call: Call) -> Generator[None, None, DescribeClientQuotasResponse]:
    decision = yield from describe_client_quotas.begin(node.view.context, call.message, call.version)
    return decision.answer
