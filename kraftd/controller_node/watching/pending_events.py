"""Logs and audits the changes of decisions once they are committed.

Changes that a lost leadership undoes are never reported.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from kraftd.controller_node.watching.audit import CREATED, MAX_NAMES, PARTITIONS_CHANGED, audit
from kraftd.metadata.image import Image
from kraftd.requests.call import Call
from kraftd.requests.effects import AuditLine
from kraftd.requests.outbox import Outbox
from kraftd.wire.record_frame import VersionedRecord

QUIET = frozenset({PARTITIONS_CHANGED})  # very frequent in every cluster: audited, not logged


class PendingEvents:
    """Events that wait for the commit of their records, in log order."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._waiting: deque[AuditLine] = deque()

    def note(self, image: Image, end_offset: int, records: list[VersionedRecord], call: Call | None) -> None:
        """Note a decision's records before they are applied to the image; they end before that offset.

        A fault here is logged: the change happens without its events.
        """
        try:
            self._waiting += audit(image, records, end_offset, call)
        except Exception as error:
            self._log_fault(error, end_offset)

    def release(self, high_watermark: int) -> None:
        """Log and audit the events below the high watermark; topics committed together share one line.

        A fault here is logged: the commit happens without the rest of its events.
        """
        try:
            self._release(high_watermark)
        except Exception as error:
            self._log_fault(error, high_watermark)

    def _log_fault(self, error: Exception, end_offset: int) -> None:
        text = "changes could not be logged or audited"
        self._outbox.log("error", text, end_offset=end_offset, error=repr(error), exc_info=error)

    def _release(self, high_watermark: int) -> None:
        waiting, emit = self._waiting, self._outbox.emit
        created: list[AuditLine] = []
        while waiting and waiting[0].offset <= high_watermark:
            event = waiting.popleft()
            emit(event)
            if event.event == CREATED:
                created.append(event)
                continue
            self._log_created(created)
            created = []
            if event.event not in QUIET:
                self._outbox.log("info", event.event, **event.fields)
        self._log_created(created)

    def forget(self) -> None:
        """Forget the rest after the leadership is lost: the next leader decides its fate."""
        self._waiting.clear()

    def _log_created(self, events: list[AuditLine]) -> None:
        if len(events) == 1:
            self._outbox.log("info", CREATED, **events[0].fields)
        elif events:
            details: list[Any] = [event.detail for event in events]  # NamedTopics each
            names = ", ".join(detail.fields()["topics"] for detail in details[:MAX_NAMES])
            more = ", …" if len(details) > MAX_NAMES else ""
            count = sum(detail.count for detail in details)
            self._outbox.log("info", CREATED, count=count, topics=names + more)

    def __repr__(self) -> str:
        return f"<PendingEvents {len(self._waiting)}>"
