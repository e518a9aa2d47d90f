"""Brings two controllers whose logs differ to the same state at the same offset."""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.messages import create_acls_request, delete_acls_request
from kraftd.messages import incremental_alter_configs_request as configs
from kraftd.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from kraftd.messages.unregister_broker_request import UnregisterBrokerRequest
from kraftd.metadata.image import Image
from kraftd.wire.message import Message
from tests.kafka.conformance.departures import Start, departures, left_in
from tests.kafka.conformance.requests import admin, registration
from tests.kafka.conformance.settling import ANY_ACL
from tests.kafka.conformance.sides import SecuredPair, SecuredSide, Step

_MOST_AT_ONCE = 2_000
_BROKER_ID = 0


def level(pair: SecuredPair, images: Sequence[Image], start: Start) -> None:
    """Empty both, and let the shorter log grow until both end at one offset.

    AssertionError if they then do not.
    """
    sides = list(zip(pair.sides, images, strict=True))
    for side, image in sides:
        for step in departures(image, start, pair.cluster_id):
            _send(side, image, step)
        assert not left_in(image, start), f"{side!r} keeps {left_in(image, start)}"
    goal = max(image.next_producer_id for image in images)
    for side, image in sides:
        _allocate(side, image, goal, pair.cluster_id)
    ends = [side.next_offset for side in pair.sides]
    end = max(ends) + 2 * (abs(ends[0] - ends[1]) == 1)  # no request writes one record and keeps the state
    for side, image in sides:
        _write_up_to(end, side, image)
    ends = [side.next_offset for side in pair.sides]
    assert ends[0] == ends[1], f"{pair!r} ends at {ends}"
    for side in pair.sides:
        side.forget_ids()


def _send(side: SecuredSide, image: Image, step: Step) -> None:
    side.send(step)
    side.receive(step)
    for offset, epoch, message in side.read_log().records:
        image.apply(message, offset, epoch)


def _allocate(side: SecuredSide, image: Image, goal: int, cluster_id: str) -> None:
    """Allocate producer ids up to the goal, to a broker that is registered for this only."""
    if image.next_producer_id >= goal:
        return
    _send(side, image, admin(registration(_BROKER_ID, cluster_id)))
    while image.next_producer_id < goal:
        request = AllocateProducerIdsRequest(_BROKER_ID, image.brokers[_BROKER_ID].epoch)
        _send(side, image, admin(request))
    _send(side, image, admin(UnregisterBrokerRequest(_BROKER_ID)))


def _write_up_to(end: int, side: SecuredSide, image: Image) -> None:
    """Write records that leave the state as it was, at least two, until the log ends there."""
    missing = end - side.next_offset
    if missing == 0:
        return
    _send(side, image, admin(_config("1")))
    for number in range(2, missing % 2 + 2):
        _send(side, image, admin(_config(str(number))))
    _send(side, image, admin(_config(None)))
    while (missing := end - side.next_offset) > 0:
        _send(side, image, admin(_acls(min(_MOST_AT_ONCE, missing // 2))))
        every = delete_acls_request.DeleteAclsFilter(*ANY_ACL)
        _send(side, image, admin(delete_acls_request.DeleteAclsRequest([every])))


def _config(value: str | None) -> Message:
    change = configs.AlterableConfig("log.retention.ms", 0 if value is not None else 1, value)
    return configs.IncrementalAlterConfigsRequest([configs.AlterConfigsResource(4, "", [change])])


def _acls(count: int) -> Message:
    m = create_acls_request
    return m.CreateAclsRequest(
        [m.AclCreation(2, f"filler-{number}", 3, "User:x", "*", 3, 3) for number in range(count)]
    )
