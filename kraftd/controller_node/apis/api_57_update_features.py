"""UpdateFeatures (57), v0-2: finalize other levels of features, metadata.version and kraft.version among
them (KIP-584).

Authorization: ALTER on the cluster. Sent by: admin clients. Answered after commit. Errors, for the whole:
INVALID_UPDATE_VERSION, and the error with which the quorum refuses a kraft.version.
Differs from Apache Kafka: metadata.version goes down wherever no metadata in force needs the higher level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.controller.context import Context
from kraftd.controller.features.update import FeatureUpdate, refused, update_features
from kraftd.messages.update_features_request import UpdateFeaturesRequest
from kraftd.wire.error_code import ErrorCode

VOTERS_UNKNOWN = (
    "the leader does not know yet that every voter supports that kraft.version. "
    "Each reports it within seconds of a start or an election: try again then"
)

if TYPE_CHECKING:
    from kraftd.controller_node.node import Node
    from kraftd.requests.call import Call


def handle(node: Node, call: Call) -> None:
    def decide(ctx: Context, request: UpdateFeaturesRequest, version: int) -> FeatureUpdate:
        update = update_features(ctx, request, version)
        if update.kraft_version is not None:
            error = node.decisions.appends.upgrade_kraft_version(update.kraft_version, update.validate_only)
            if error is not None:
                is_unknown = error is ErrorCode.INVALID_UPDATE_VERSION  # a downgrade is refused above
                return refused(VOTERS_UNKNOWN if is_unknown else error.message, error)
        return update

    node.decisions.decide(call, decide)
