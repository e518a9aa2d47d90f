"""What members of a group have, from the bytes that their leader has sent."""

from __future__ import annotations

import pytest

from kraftd.client.group_description import assigned_places
from kraftd.client.group_member import encode_data
from kraftd.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition


def test_the_partitions_of_an_assignment() -> None:
    assignment = ConsumerProtocolAssignment([TopicPartition("a", (0, 2)), TopicPartition("b", (1,))])
    assert assigned_places(encode_data(assignment, 1)) == (("a", 0), ("a", 2), ("b", 1))


@pytest.mark.parametrize("data", [b"", b"\0", b"x" * 40, b"\0\0\0\0\0\1\0\1"])
def test_bytes_that_are_no_assignment_hide_no_member(data: bytes) -> None:
    """A leader may send any bytes, and brokers pass them on: the rest of the group is described."""
    assert assigned_places(data) == ()
