"""The assignment that a group's leader makes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kraftd.client.group_member import (
    assign_ranges,
    decode_assignment,
    decode_subscription,
    encode_data,
)
from kraftd.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kraftd.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

TOPICS = ("a", "b", "c")


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.sets(st.sampled_from(TOPICS)), max_size=6),
    st.fixed_dictionaries({topic: st.integers(0, 9) for topic in TOPICS}),
)
def test_each_partition_has_one_owner_that_subscribes(
    members: dict[str, set[str]], counts: dict[str, int]
) -> None:
    assigned = assign_ranges({member: sorted(topics) for member, topics in members.items()}, counts)
    owned = [
        (topic, index)
        for member, topics in assigned.items()
        for topic, indexes in topics.items()
        for index in indexes
        if topic in members[member]
    ]
    subscribed = set().union(*members.values()) if members else set()
    assert sorted(owned) == [
        (topic, index) for topic in TOPICS if topic in subscribed for index in range(counts[topic])
    ]
    for topic in TOPICS:
        shares = [len(assigned[member].get(topic, ())) for member in members if topic in members[member]]
        assert not shares or max(shares) - min(shares) <= 1


def test_subscription_and_assignment_are_read_in_each_version() -> None:
    for version in range(4):
        assert decode_subscription(encode_data(ConsumerProtocolSubscription(("x", "y")), version)) == (
            "x",
            "y",
        )
        sent = encode_data(ConsumerProtocolAssignment([TopicPartition("x", (0, 2))]), version)
        assert decode_assignment(sent) == {"x": [0, 2]}
    assert decode_assignment(b"") == {}
