"""One request, by its caller, while it waits for its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from kraftd.acl import AclOperation, AclResourceType

Allows = Callable[[AclOperation, AclResourceType, str], bool]


class Topics(Protocol):
    """What the metadata image says of topics."""

    def topic_id(self, name: str) -> bytes | None: ...

    def topic_name(self, topic_id: bytes) -> str | None: ...

    def has_partition(self, name: str, index: int) -> bool: ...


class Metadata(Topics, Protocol):
    """What consumer groups need to know of the metadata image besides."""

    def version(self) -> int:
        """A number that changes with the image."""

    def hashes_version(self) -> int:
        """A number that changes with the image's content, and when the hash of a large topic becomes known.

        While it is the same, all that is said here is.
        """

    def names_version(self) -> int:
        """The version in which the newest topic was seen first."""

    def names(self) -> Iterable[str]:
        """All topics, as they are now."""

    def partition_count(self, topic_id: bytes) -> int:
        """How many partitions a topic has; 0 if there is none."""

    def topic_hash(self, name: str) -> int | None:
        """The hash of what a topic is like (`consumer.metadata_hash`); None if there is none.

        That of a large topic may be an older one, or None, until a change of `hashes_version`.
        """

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        """The configs of a group that were set."""

    def dynamic_config(self, name: str) -> str | None:
        """A config of this broker, or else of all brokers, that was set while they run; None if none was."""


def allows_all(operation: AclOperation, resource_type: AclResourceType, name: str) -> bool:
    """Return whether access is allowed: without an authorizer it always is."""
    return True


class Call:
    """The caller's token, the version of its request, and who it says it is.

    client_host: as Kafka shows it, such as ``/127.0.0.1``. allows: the verdict on this principal.
    allows_quietly: the same without an audit event, where the verdict only decides how much is seen.
    guard: of the verification of a transaction's part (KIP-890). in_slices: a long answer is built in slices.
    divided: what `consumer.divisions` made for a heartbeat. again: takes the same request again, at a time in
    milliseconds; returns False, and does nothing, if the answer may be another one then. varied: takes the
    same request with other numbers (`offsets.repeated_commit`).
    """

    __slots__ = (
        "again",
        "allows",
        "allows_quietly",
        "client_host",
        "client_id",
        "divided",
        "guard",
        "in_slices",
        "is_answered",
        "token",
        "varied",
        "version",
    )

    def __init__(
        self,
        token: Any,
        version: int,
        client_id: str = "",
        client_host: str = "",
        allows: Allows = allows_all,
    ) -> None:
        self.token = token
        self.version = version
        self.client_id = client_id
        self.client_host = client_host
        self.allows = allows
        self.allows_quietly = allows
        self.guard = 0
        self.in_slices = False
        self.divided: object = None
        self.again: Callable[[int], bool] | None = None
        self.varied: Any = None
        self.is_answered = False

    def __repr__(self) -> str:
        return f"<Call {self.token!r} v{self.version}{' answered' if self.is_answered else ''}>"
