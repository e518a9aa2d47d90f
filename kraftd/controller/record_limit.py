"""Limits of the changes in one request."""

from __future__ import annotations

from kraftd.ground.refusal import Refusal
from kraftd.wire.error_code import ErrorCode

# A request's records are appended as one batch, or nearly so: followers and memory can take no more at once.
MAX_RECORDS_PER_REQUEST = 10_000
MAX_PARTITIONS_PER_REQUEST = 10_000


def check_record_count(count: int) -> None:
    """Raises Refusal(POLICY_VIOLATION) if a request would write more than 10,000 records."""
    if count > MAX_RECORDS_PER_REQUEST:
        raise Refusal(
            ErrorCode.POLICY_VIOLATION,
            f"The request would change too much at once: more than {MAX_RECORDS_PER_REQUEST} records.",
        )
