"""Sessions of share fetches: epochs, what answers have, and how sessions end (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraftd.fetch.session_cache import FINAL_EPOCH, MAX_EPOCH
from kraftd.fetch.share_sessions import Member, ShareSessions
from kraftd.ground.refusal import Refusal
from kraftd.wire.error_code import ErrorCode

A, B = Member("g", "a"), Member("g", "b")
ONE, TWO, THREE = ((bytes(15) + b"\1", index) for index in range(3))


def refused(act: Callable[[], object]) -> ErrorCode:
    with pytest.raises(Refusal) as found:
        act()
    return found.value.code


def test_each_request_of_a_session_carries_the_next_epoch() -> None:
    sessions = ShareSessions(10)
    session = sessions.fetch(A, 0, 1, [ONE])
    assert sessions.fetch(A, 1, 1, [TWO], [ONE]) is session
    assert list(session.partitions) == [TWO]
    assert sessions.acknowledge(A, 2) is session
    for epoch in (2, 4):
        assert refused(lambda epoch=epoch: sessions.fetch(A, epoch, 1, [])) == (  # type: ignore[misc]
            ErrorCode.INVALID_SHARE_SESSION_EPOCH
        )
    session.epoch = MAX_EPOCH
    sessions.acknowledge(A, MAX_EPOCH)
    assert session.epoch == 1
    assert sessions.fetch(A, 0, 1, [THREE]) is not session


def test_what_no_session_can_do_is_refused() -> None:
    sessions = ShareSessions(1)
    assert refused(lambda: sessions.fetch(A, 1, 1, [])) == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert refused(lambda: sessions.fetch(A, FINAL_EPOCH, 1, [])) == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert refused(lambda: sessions.fetch(A, 0, 1, [], acknowledges=True)) == ErrorCode.INVALID_REQUEST
    sessions.fetch(A, 0, 1, [ONE])
    assert refused(lambda: sessions.acknowledge(A, 0)) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert refused(lambda: sessions.fetch(B, 0, 2, [ONE])) == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    sessions.fetch(A, 0, 3, [TWO])  # takes its own place
    assert len(sessions) == 1


def test_a_first_fetch_that_names_a_partition_twice_ends_the_former_session() -> None:
    sessions = ShareSessions(1)
    sessions.fetch(A, 0, 1, [ONE])
    session = sessions.fetch(A, 1, 1, [ONE, TWO, TWO])  # later ones may
    assert list(session.partitions) == [ONE, TWO]
    assert refused(lambda: sessions.fetch(A, 0, 1, [ONE, TWO, ONE])) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not len(sessions)


def test_an_answer_has_what_is_new_or_had_an_error() -> None:
    sessions = ShareSessions(10)
    session = sessions.fetch(A, 0, 1, [ONE, TWO])
    sessions.fetch(A, 1, 1, [THREE])

    def answered(one: tuple[bytes, int], records: bool = False, error: bool = False) -> bool:
        shows = session.must_answer(one, has_records=records, has_error=error)
        assert session.must_answer(one, has_records=records, has_error=error) == shows
        session.answered(one, has_records=records, has_error=error)
        return shows

    assert [answered(one) for one in (ONE, TWO, THREE)] == [False, False, True]
    assert answered(ONE, records=True)
    assert list(session.partitions) == [TWO, THREE, ONE]  # the others are read first
    assert answered(TWO, error=True)
    assert answered(TWO) and not answered(TWO)


def test_a_session_ends_with_its_connection_or_by_request() -> None:
    sessions = ShareSessions(10)
    sessions.fetch(A, 0, 1, [ONE])
    sessions.fetch(B, 0, 2, [TWO])
    assert sessions.connection_closed(3) is None
    assert sessions.connection_closed(1) == (A, (ONE,), False)
    assert sessions.connection_closed(1) is None
    assert sessions.fetch(B, FINAL_EPOCH, 2, []).member == B
    assert sessions.end(B) == (B, (TWO,), True)
    assert sessions.connection_closed(2) == (B, (), True)  # it was the group's last connection
    assert sessions.connection_closed(2) is None


def test_a_connection_ends_no_session_that_began_on_another() -> None:
    sessions = ShareSessions(10)
    sessions.fetch(A, 0, 1, [ONE])
    sessions.fetch(A, 0, 2, [ONE])
    assert sessions.connection_closed(1) == (A, (), False)
    assert len(sessions) == 1
