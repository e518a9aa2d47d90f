"""ControllerRegistration (KIP-919): the endpoints and supported features of each controller."""

from __future__ import annotations

from kraftd.controller.context import Context
from kraftd.controller.decision import Decision
from kraftd.controller.endpoints import checked_endpoints
from kraftd.ground.refusal import Refusal
from kraftd.messages.controller_registration_request import ControllerRegistrationRequest
from kraftd.messages.controller_registration_response import ControllerRegistrationResponse
from kraftd.messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraftd.metadata.metadata_version import allows_controller_registration
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.record_frame import VersionedRecord


def register_controller(
    ctx: Context, request: ControllerRegistrationRequest, _version: int = 0
) -> Decision[ControllerRegistrationResponse]:
    """ControllerRegistration (70), v0: a controller registers its endpoints and supported features
    (KIP-919).

    Authorization: CLUSTER_ACTION. Sent by: controllers, once per start. Answered after commit. Errors:
    UNSUPPORTED_VERSION (metadata.version is below 3.7). Differs from Apache Kafka: nowhere.

    Replace the previous registration. Raises Refusal(UNSUPPORTED_VERSION) before metadata.version 3.7-IV0.
    """
    if not allows_controller_registration(ctx.image.metadata_version):
        raise Refusal(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Controllers cannot register at metadata.version {ctx.image.metadata_version}.",
        )
    record = RegisterControllerRecord(
        request.controller_id,
        request.incarnation_id,
        False,
        [ControllerEndpoint(*endpoint) for endpoint in checked_endpoints(request.listeners)],
        [
            ControllerFeature(f.name, f.min_supported_version, f.max_supported_version)
            for f in request.features
        ],
    )
    return Decision(ControllerRegistrationResponse(), [VersionedRecord(record, 0)])
