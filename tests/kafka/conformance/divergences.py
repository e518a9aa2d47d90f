"""The deliberate differences that sequences find: each has its line in docs/divergence.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode

Applies = Callable[[int, Any, Any], bool]  # of an API key, Kafka's answer and kraftd's
_LISTED_ONLY = (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.DESCRIBE_DELEGATION_TOKEN)


class Divergence(NamedTuple):
    """A difference, with the bold words at the beginning of its line in docs/divergence.md."""

    title: str
    applies: Applies


def _unknown_error(answer: Any) -> bool:
    return isinstance(answer, dict) and answer.get("errorCode") == ErrorCode.UNKNOWN_SERVER_ERROR


DIVERGENCES = (
    Divergence(
        "DescribeUserScramCredentials and DescribeDelegationToken",
        lambda key, kafka, kraftd: (
            key in _LISTED_ONLY and _unknown_error(kafka) and not _unknown_error(kraftd)
        ),
    ),
    Divergence(
        "Refusals of FetchSnapshot",
        lambda key, kafka, kraftd: key == ApiKey.FETCH_SNAPSHOT and _unknown_error(kafka),
    ),
)


def divergence_of(key: int, kafka: Any, kraftd: Any) -> Divergence | None:
    """The deliberate difference between these two answers, or None."""
    return next((one for one in DIVERGENCES if one.applies(key, kafka, kraftd)), None)
