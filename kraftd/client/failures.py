"""Failures between a client and a cluster; each text names the node and the reason."""

from __future__ import annotations

NO_ANSWER, NO_CONNECTION = "no answer in time", "no connection in time"


class ClientFailure(Exception):
    """The base of all failures of a client."""


class Unreachable(ClientFailure):
    """No node listens there, or none that answers in Kafka's protocol."""


class NoAnswer(Unreachable):
    """No answer came in time, as of a frozen node, or no connection, as to a host that is gone."""


class Refused(ClientFailure):
    """A node answered with an error. code is Kafka's."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class NoLeader(ClientFailure):
    """Nodes answer, but none leads now."""


class Truncated(ClientFailure):
    """Records that were read are gone: the log was truncated below the position (KIP-320).

    end_offset is the end of the common part, leader_epoch the epoch of its last record.
    """

    def __init__(self, log_name: str, position: int, end_offset: int, leader_epoch: int) -> None:
        super().__init__(
            f"{log_name}: the log was truncated to offset {end_offset} (epoch {leader_epoch}); the records "
            f"from there to {position - 1} that were read are gone"
        )
        self.position = position
        self.end_offset = end_offset
        self.leader_epoch = leader_epoch


class OutOfRange(ClientFailure):
    """The log no longer holds a position, or does not reach as far."""
