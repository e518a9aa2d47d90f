"""Value types that all packages share: identities, epochs, endpoints and 16-byte ids.

They have no behaviour but their text.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import UTC, datetime
from struct import Struct

from kraftd.named_tuple import NamedTuple

Uuid = bytes  # 16 raw bytes

ZERO_UUID: Uuid = bytes(16)
ONE_UUID: Uuid = bytes(15) + b"\x01"

METADATA_TOPIC = "__cluster_metadata"
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
METADATA_TOPIC_ID: Uuid = ONE_UUID
METADATA_PARTITION = 0

# Reserved directory ids (KIP-858).
DIRECTORY_MIGRATING: Uuid = ZERO_UUID
DIRECTORY_UNASSIGNED: Uuid = ONE_UUID
DIRECTORY_LOST: Uuid = bytes(15) + b"\x02"

_HALVES = Struct(">qq")


def time_text(timestamp_ms: int) -> str:
    """`2026-11-22 06:51:05.123Z`; "-" for an unknown time."""
    if not 0 <= timestamp_ms < 1 << 47:
        return "-"
    moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{timestamp_ms % 1000:03d}Z"


def as_long(number: int) -> int:
    """A number as Java's long has it after an overflow."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def uuid_text(uuid: Uuid) -> str:
    """Kafka's text of a uuid: URL-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(uuid).decode("ascii").rstrip("=")


def shown_bytes(data: bytes | None) -> str | dict[str, str] | None:
    """Bytes for JSON: UTF-8 text, else `{"base64": "..."}`; null stays null."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def parse_uuid(text: str) -> Uuid:
    """The 16 bytes behind Kafka's text of a uuid. Raises ValueError when it is not one."""
    if "+" in text or "/" in text:
        raise ValueError(f"{text!r} is not a uuid: it has - and _ where other texts in base 64 have + and /")
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a uuid: {error}") from None
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not a uuid: {len(raw)} bytes, not 16")
    return raw


def in_kafkas_order(ids: Iterable[Uuid]) -> tuple[Uuid, ...]:
    """Ids in Kafka's order, which compares signed halves, so that both write the same records."""
    return tuple(sorted(ids, key=_HALVES.unpack))


class ReplicaKey(NamedTuple):
    """A replica's identity: its node id and the id of its metadata directory (None if unknown, KIP-853)."""

    id: int
    directory_id: Uuid | None = None

    def __repr__(self) -> str:
        return f"{self.id}:{uuid_text(self.directory_id) if self.directory_id else '-'}"


class OffsetAndEpoch(NamedTuple):
    """A position in the log: an end offset and the epoch of the record before it."""

    offset: int
    epoch: int

    def __repr__(self) -> str:
        return f"{self.offset}@{self.epoch}"


def address_text(address: tuple[str, int]) -> str:
    """HOST:PORT as files have it, an IPv6 address in brackets."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Endpoint(NamedTuple):
    """Where a listener can be reached.

    security_protocol is Kafka's number: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    """

    listener: str
    host: str
    port: int
    security_protocol: int = 0

    def __repr__(self) -> str:
        return f"{self.listener}://{self.host}:{self.port}"
