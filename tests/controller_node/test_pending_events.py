"""The lines that committed changes leave in the log and the audit log, and their order."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.controller_node.watching import pending_events as pending_events_module
from kraftd.controller_node.watching.pending_events import PendingEvents
from kraftd.messages.fence_broker_record import FenceBrokerRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata.image import Image
from kraftd.requests.call import Call
from kraftd.requests.effects import AuditLine, LogLine
from kraftd.requests.outbox import Outbox
from kraftd.wire.api import ApiKey
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import Cluster


class ReleasedEvents:
    def __init__(self, image: Image | None = None) -> None:
        self.outbox = Outbox()
        self.pending_events = PendingEvents(self.outbox)
        self.image = image or Image()

    def note(self, end_offset: int, *messages: Message) -> None:
        records = [VersionedRecord(message, 0) for message in messages]
        self.pending_events.note(self.image, end_offset, records, None)

    def release(self, high_watermark: int) -> list[Any]:
        """Release events; return them in order, lines of the log with their fields."""
        self.pending_events.release(high_watermark)
        return [
            one.event if isinstance(one, AuditLine) else (one.level, one.text, one.fields)
            for one in self.outbox.take()
            if isinstance(one, AuditLine | LogLine)
        ]


def created(*names: str) -> list[Message]:
    return [TopicRecord(name, name.encode().rjust(16, b"\0")) for name in names]


def line(count: int, topics: str) -> tuple[str, str, dict[str, Any]]:
    return "info", "topics created", {"count": count, "topics": topics}


SESSION_OVER = "no heartbeat within broker.session.timeout.ms"


def test_changes_are_logged_once_the_high_watermark_has_passed_them() -> None:
    harness = ReleasedEvents()
    harness.note(5, *created("a"))
    harness.note(7, FenceBrokerRecord(1, 9))
    assert harness.release(4) == []
    assert harness.release(5) == ["topics created", line(1, "a")]
    assert harness.release(6) == []
    fenced = ("info", "broker fenced", {"broker": 1, "broker_epoch": 9, "reason": SESSION_OVER})
    assert harness.release(7) == ["broker fenced", fenced]
    assert harness.release(99) == []


def test_topics_committed_together_share_a_line_up_to_another_change() -> None:
    harness = ReleasedEvents()
    harness.note(1, *created("a"))
    harness.note(3, *created("b", "c"))
    harness.note(4, FenceBrokerRecord(1, 9))
    harness.note(5, *created("d"))
    fenced = ("info", "broker fenced", {"broker": 1, "broker_epoch": 9, "reason": SESSION_OVER})
    assert harness.release(5) == [
        "topics created",
        "topics created",
        "broker fenced",
        line(3, "a, b, c"),
        fenced,
        "topics created",
        line(1, "d"),
    ]


def test_a_shared_line_names_the_topics_of_ten_requests() -> None:
    for count in (10, 11):
        harness = ReleasedEvents()
        names = [f"t{number}" for number in range(count)]
        for number, name in enumerate(names, 1):
            harness.note(number, *created(name))
        assert harness.release(count)[-1] == line(
            count, ", ".join(names[:10]) + (", …" if count > 10 else "")
        )


def test_changes_of_partitions_are_audited_and_not_logged() -> None:
    cluster = Cluster().brokers(1, 2)
    topic = cluster.topic("a", (1, 2))
    harness = ReleasedEvents(cluster.image)
    harness.note(5, PartitionChangeRecord(0, topic.id, isr=(1,)))
    harness.note(6, PartitionRecord(0, topic.id, (1,), (1,), leader=1))
    assert harness.release(6) == [
        "partitions changed",
        "partitions added",
        ("info", "partitions added", {"topic": "a", "count": 1}),
    ]


def test_changes_that_a_lost_leadership_undoes_are_never_logged() -> None:
    harness = ReleasedEvents()
    harness.note(5, *created("a"))
    harness.pending_events.forget()
    assert harness.release(9) == []


def test_a_fault_in_an_event_is_logged_with_its_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ZeroDivisionError("planted")

    def fail(*_: Any) -> Any:
        raise error

    text = "changes could not be logged or audited"
    harness = ReleasedEvents()
    harness.note(5, *created("a"))
    with monkeypatch.context() as fault:
        fault.setattr(pending_events_module, "audit", fail)
        harness.note(7, *created("b"))
    fields = {"error": repr(error), "exc_info": error}
    assert harness.release(4) == [("error", text, {"end_offset": 7, **fields})]
    with monkeypatch.context() as fault:
        fault.setattr(PendingEvents, "_log_created", fail)
        assert harness.release(6) == ["topics created", ("error", text, {"end_offset": 6, **fields})]
    assert harness.release(9) == []


def test_an_event_names_the_call_that_caused_it() -> None:
    harness = ReleasedEvents()
    call = Call(1, 0, "C", "10.0.0.1", ApiKey.CREATE_TOPICS, 7, 1, "admin", None)
    harness.pending_events.note(harness.image, 5, [VersionedRecord(one, 0) for one in created("a")], call)
    harness.pending_events.release(5)
    (event,) = (one for one in harness.outbox.take() if isinstance(one, AuditLine))
    assert (event.fields["client_id"], event.fields["host"]) == ("admin", "10.0.0.1")
