"""The page and what it is computed from, without Kafka."""

from __future__ import annotations

from kraftd.messages.create_topics_request import CreateTopicsRequest
from kraftd.messages.describe_delegation_token_request import DescribeDelegationTokenRequest
from tests.kafka.conformance.divergences import DIVERGENCES
from tests.kafka.conformance.page import PAGE, page, part_of_brokers, read, summary
from tests.kafka.conformance.seen import Seen
from tests.kafka.conformance.settling import envelope
from tests.kafka.conformance.sides import Step

TOPIC = {"topics": [{"errorCode": 0}, {"errorCode": 36}]}


def test_the_page_counts_codes_by_api_and_version_and_lists_differences() -> None:
    seen, both = Seen(), "NONE 1, TOPIC_ALREADY_EXISTS 1"
    create = CreateTopicsRequest()
    seen.note(Step("admin", create, 7), TOPIC, TOPIC)
    seen.note(Step("admin", create, 6), TOPIC, {"topics": [{"errorCode": 42}]})
    forwarded = Step("admin", envelope("alice", create), 0)
    seen.note(forwarded, *[{"errorCode": 0, "carried": TOPIC}] * 2)
    tokens = Step("admin", DescribeDelegationTokenRequest(), 3)
    divergence = seen.note(tokens, {"errorCode": -1}, {"errorCode": 0})
    assert divergence is not None
    rows = [line for line in page(seen, "").splitlines() if line.startswith("| ")]
    assert rows[1:] == [
        f"| CreateTopics (19) | 6 | {both} | – |"
        " **another answer** to NONE; **another answer** to TOPIC_ALREADY_EXISTS |",
        f"| CreateTopics (19) | 7 | {both} | {both} | the same |",
        "| DescribeDelegationToken (41) | 3 | UNKNOWN_SERVER_ERROR 1 | – "
        f"| UNKNOWN_SERVER_ERROR: {divergence.title} |",
        "| Envelope (58) | 0 | NONE 1 | – | the same |",
    ]


def test_a_page_is_read_back_so_that_another_run_adds_to_it() -> None:
    text = PAGE.read_text()
    seen = read(text)
    assert page(seen, summary(seen), part_of_brokers(text)) == text
    before = seen.sequences
    seen.add(read(text))
    assert seen.sequences == 2 * before and f"{2 * before:,} sequences" in summary(seen)


def test_every_deliberate_difference_of_the_page_has_its_line() -> None:
    lines = (PAGE.parent / "divergence.md").read_text().splitlines()
    for one in DIVERGENCES:
        assert any(line.startswith(f"- **{one.title}") for line in lines), one
