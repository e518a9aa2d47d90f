"""Requests whose own timeout has passed when they come to be decided: their senders wait no longer."""

from __future__ import annotations

from kraftd.controller.decision import Refusal
from kraftd.wire.error_code import ErrorCode


def check_time_left(timeout_ms: int) -> None:
    """Raise Refusal(REQUEST_TIMED_OUT) when a request has no time left: it is not decided.

    Kafka's controller looks when the request's turn in its queue comes. So 0 ms and less are always too late.
    """
    if timeout_ms <= 0:
        raise Refusal(ErrorCode.REQUEST_TIMED_OUT)  # no text, as Kafka
