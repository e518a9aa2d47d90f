"""Lines about authorization: Kafka's fields, one for each denial, and a bounded number per period."""

from __future__ import annotations

from typing import Any

import pytest

from kraftd.acl import AclOperation, AclResourceType
from kraftd.requests.authorization_audit import MAX_LINES_PER_PERIOD, AuthorizationAudit
from kraftd.requests.call import Call
from kraftd.requests.effects import AuditLine, LogLine
from kraftd.requests.outbox import Outbox
from kraftd.security.principals import Principal
from kraftd.wire.api import ApiKey


class Judge:
    """Returns the question as its reason."""

    def reason(self, *question: Any) -> str:
        return " ".join(map(str, question))


def note(audit: AuthorizationAudit, allowed: bool, key: int = ApiKey.CREATE_TOPICS) -> None:
    call = Call(1, 0, "C", "10.0.0.1", key, 0, 1, "admin", None, Principal("User", "alice"))
    audit.note(Judge(), allowed, call, AclOperation.CREATE, AclResourceType.TOPIC, "a")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("allowed", "result", "level", "event"),
    [
        (False, "Denied", "info", "authorization denied"),
        (True, "Allowed", "debug", "authorization allowed"),
    ],
)
@pytest.mark.parametrize(("key", "api"), [(ApiKey.CREATE_TOPICS, "CREATE_TOPICS"), (999, "999")])
def test_a_decision_is_audited_and_logged(
    allowed: bool, result: str, level: str, event: str, key: int, api: str
) -> None:
    outbox = Outbox()
    note(AuthorizationAudit(outbox, allowances=True), allowed, key)
    fields = {
        "principal": "User:alice",
        "result": result,
        "operation": "CREATE",
        "host": "10.0.0.1",
        "resource": "TOPIC:LITERAL:a",
        "client_id": "admin",
        "api": api,
        "rule": f"User:alice 10.0.0.1 {AclOperation.CREATE} {AclResourceType.TOPIC} a",
    }
    assert outbox.take() == [AuditLine(event, -1, fields), LogLine(level, event, fields)]


@pytest.mark.parametrize(("allowances", "lines"), [(False, 2), (True, 5)])
def test_allowances_are_counted_and_logged_if_configured(allowances: bool, lines: int) -> None:
    outbox = Outbox()
    audit = AuthorizationAudit(outbox, allowances=allowances)
    for allowed in (True, False, True, True, False):
        note(audit, allowed)
    assert (audit.allowed, audit.denied) == (3, 2)
    assert len(outbox.take()) == 2 * lines


@pytest.mark.parametrize("beyond", [-1, 0, 1, 7])
def test_lines_per_period_are_limited_and_omitted_ones_are_counted(beyond: int) -> None:
    outbox = Outbox()
    audit = AuthorizationAudit(outbox)
    for _ in range(2):
        for _ in range(MAX_LINES_PER_PERIOD + beyond):
            note(audit, False)
        assert len(outbox.take()) == 2 * (MAX_LINES_PER_PERIOD + min(beyond, 0))
        assert audit.end_period() == max(beyond, 0)


def test_denials_of_one_request_are_counted_in_one_line() -> None:
    outbox = Outbox()
    audit = AuthorizationAudit(outbox)
    call = Call(1, 0, "C", "10.0.0.1", ApiKey.CREATE_TOPICS, 0, 1, "admin", None, Principal("User", "alice"))
    audit.note_denials(call, AclOperation.CREATE, AclResourceType.TOPIC, 1_000)
    assert audit.denied == 1_000
    event, line = outbox.take()
    assert isinstance(event, AuditLine) and isinstance(line, LogLine)
    assert event.event == line.text == "authorization denied"
    assert (line.fields["count"], line.fields["resource"]) == (1_000, "1000 more of type TOPIC")
    assert line.fields["operation"] == "CREATE"
