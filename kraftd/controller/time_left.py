"""Requests whose own timeout has passed before their decision: their senders no longer wait."""

from __future__ import annotations

from kraftd.ground.refusal import Refusal
from kraftd.wire.error_code import ErrorCode


def check_time_left(timeout_ms: int) -> None:
    """Raise Refusal(REQUEST_TIMED_OUT) if a request has no time left.

    Kafka's controller checks when it takes the request from its queue, so 0 ms and less are always too late.
    """
    if timeout_ms <= 0:
        raise Refusal(ErrorCode.REQUEST_TIMED_OUT)  # no text, as Kafka
