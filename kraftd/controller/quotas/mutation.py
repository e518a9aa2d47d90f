"""The controller mutation quota (KIP-599): how many partitions a client may create and delete a second.

A token bucket for each entity with a ``controller_mutation_rate``, full at first. A strict charge refuses a
topic once the bucket is below zero, with THROTTLING_QUOTA_EXCEEDED. A permissive one, of older versions, only
returns how long the client must wait. Buckets are soft state of the active controller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kraftd.controller.quotas.entities import MUTATION_RATE
from kraftd.controller.quotas.limits import Limited, Quotas, limit_of
from kraftd.ground.refusal import Refusal
from kraftd.wire.error_code import ErrorCode

MAX_BUCKETS: Final = 10_000  # above it, full ones are forgotten
UNUSED_MS: Final = 3_600_000  # after it, without a charge, a bucket is forgotten with its debt, as in Kafka


class MutationQuotas:
    """The buckets, each with its tokens, the time of their count, and that of the last charge.

    A bucket keeps its tokens, or its debt, when its quota changes. From then on it fills at the new rate.
    """

    def __init__(self, window_ms: int = 1_000, window_count: int = 11) -> None:
        self._burst_s = window_ms * window_count / 1_000
        self._tokens: dict[Limited, tuple[float, int, int]] = {}

    def charge(
        self,
        quotas: Quotas,
        user: str,
        client_id: str,
        now_ms: int,
        *,
        strict: bool,
        on_throttle: Callable[[int], None] | None = None,
    ) -> Charge:
        """The charge for one request of a client; it takes no token before ``Charge.commit``.

        `on_throttle` gets the milliseconds that the client must wait, each time that they are computed.
        """
        found = limit_of(quotas, MUTATION_RATE, user, client_id) if quotas else None
        if found is None:
            return UNLIMITED
        bucket, rate = found
        burst = rate * self._burst_s
        tokens, counted_ms, charged_ms = self._tokens.get(bucket, (burst, now_ms, now_ms))
        if now_ms - charged_ms > UNUSED_MS:
            tokens = burst
        tokens = min(burst, tokens + rate * (now_ms - counted_ms) / 1_000)
        return Charge(self, bucket, rate, tokens, now_ms, strict=strict, on_throttle=on_throttle)

    def put(self, bucket: Limited, tokens: float, now_ms: int, *, is_charged: bool = True) -> None:
        """Keep what is in a bucket now; `is_charged`: tokens were taken."""
        known = self._tokens.get(bucket)
        self._tokens[bucket] = (tokens, now_ms, now_ms if is_charged or known is None else known[2])
        if len(self._tokens) > MAX_BUCKETS:
            since_ms = now_ms - self._burst_s * 1_000
            self._tokens = {
                key: kept for key, kept in self._tokens.items() if kept[0] < 0 or kept[1] > since_ms
            }
            if len(self._tokens) > MAX_BUCKETS:
                del self._tokens[next(iter(self._tokens))]

    def __repr__(self) -> str:
        return f"<MutationQuotas {len(self._tokens)} buckets>"


class Charge:
    """The use of one bucket by one request."""

    __slots__ = (
        "_bucket",
        "_now_ms",
        "_on_throttle",
        "_quotas",
        "_rate",
        "_strict",
        "_taken",
        "_tokens",
        "throttle_ms",
    )

    def __init__(
        self,
        quotas: MutationQuotas | None,
        bucket: Limited,
        rate: float,
        tokens: float,
        now_ms: int,
        *,
        strict: bool,
        on_throttle: Callable[[int], None] | None = None,
    ) -> None:
        self._quotas = quotas
        self._bucket = bucket
        self._rate = rate
        self._tokens = tokens
        self._now_ms = now_ms
        self._strict = strict
        self._on_throttle = on_throttle
        self._taken = 0
        self.throttle_ms = 0  # goes into the answer: how long the client must wait

    def take(self, partition_count: int) -> None:
        """Use tokens. Raises Refusal(THROTTLING_QUOTA_EXCEEDED) if a strict quota is used up already."""
        if self._quotas is None:
            return
        if self._strict and self._tokens < 0:
            self._note_throttle()
            raise Refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED)  # no text, as Kafka
        self._tokens -= partition_count
        self._taken += partition_count
        if not self._strict and self._tokens < 0:
            self._note_throttle()

    def commit(self, end_offset: int = 0) -> None:
        """Take the used tokens from the bucket; to be called once the request is decided."""
        if self._quotas is not None:
            is_charged = self._taken > 0
            self._quotas.put(self._bucket, self._tokens, self._now_ms, is_charged=is_charged)

    def _note_throttle(self) -> None:
        self.throttle_ms = min(2**31 - 1, round(-self._tokens / self._rate * 1_000))
        if self._on_throttle is not None:
            self._on_throttle(self.throttle_ms)

    def __repr__(self) -> str:
        if self._quotas is None:
            return "<Charge unlimited>"
        return f"<Charge of {self._bucket} {self._tokens:.1f} tokens at {self._rate:g}/s>"


UNLIMITED: Final = Charge(None, (None, None), 0.0, 0.0, 0, strict=False)
