"""C1 and C2 of ACLs, SCRAM users and delegation tokens: the answers about each fit one order, and
stay true.
"""

from __future__ import annotations

from kraftd.security.acls.acl_index import AclIndex
from kraftd.simulation.checkers.checker import Checker
from kraftd.simulation.checkers.control.records import RecordChecker
from kraftd.simulation.checkers.linearizability import History, linearizable
from kraftd.simulation.processes.controller_process import ControllerProcess
from kraftd.simulation.protocols import World


class AccessOperation:
    """An ACL or a user made or removed, with its time; `found` says whether it existed before."""

    __slots__ = ("done_us", "found", "makes", "of", "requested_us")

    def __init__(self, of: str, makes: bool, requested_us: int) -> None:
        self.of = of
        self.makes = makes
        self.requested_us = requested_us
        self.done_us: int | None = None
        self.found: bool | None = None

    def __repr__(self) -> str:
        what = "make" if self.makes else "remove"
        return f"<{what} {self.of} {self.requested_us}..{self.done_us}: found {self.found}>"


class AccessChecker(Checker):
    """The workload reports its clients' answers to it."""

    def __init__(self, world: World, records: RecordChecker) -> None:
        super().__init__(world)
        self._records = records
        self._operations: dict[str, list[AccessOperation]] = {}

    def begun(self, operation: AccessOperation) -> None:
        """Note a request. Without an answer it may take effect at any time, or never."""
        self._operations.setdefault(operation.of, []).append(operation)

    def done(self, operation: AccessOperation, found: bool | None) -> None:
        """Note an acknowledgement; `found` is None if the answer does not say what existed."""
        operation.done_us, operation.found = self.world.schedule.now_us, found
        self.world.trace.kinds["access changed"] += 1

    def refused(self, operation: AccessOperation) -> None:
        """Note a refusal for the request's content: it has no effect."""
        self._operations[operation.of].remove(operation)

    def token_answered(self, token_id: str, *, exists: bool) -> None:
        """C2: an answered token is committed; an expired one is gone for good."""
        newest = self.world.reference.newest
        if newest is None or newest.waiting is not None:
            return  # in an open metadata transaction, committed records take no effect yet
        if (token_id in self._records.image.delegation_tokens) is not exists:
            expected = "made" if exists else "expired"
            self.fail("C2", f"token {token_id} is answered as {expected}, but that is not committed")
        self.world.trace.kinds["token made" if exists else "token expired"] += 1

    def at_rest(self, known: set[str]) -> None:
        """C2: each history fits one order that ends with the committed state, `known`."""
        now_us = self.world.schedule.now_us
        for of, operations in self._operations.items():
            history: History = [_step(one) for one in operations]
            is_there = of in known
            history.append((now_us, now_us, is_there, is_there))
            if not linearizable(history):
                self.fail(
                    "C2", f"no order explains the answers about {of}: {operations[-12:]}, at last {is_there}"
                )

    def authorizer_at_rest(self, process: ControllerProcess) -> None:
        """C1: a node that has read all committed records decides by those ACLs and no others."""
        committed = self.world.committed.end
        if not process.node.following.replay.complete or process.core.high_watermark < committed:
            return
        index, wanted = process.authorizer.index, AclIndex(self._records.image.acls.values())
        if (index._literal, index._prefixed) != (wanted._literal, wanted._prefixed):
            self.fail("C1", f"{process!r} decides by {index!r}, committed is {wanted!r}")


def _step(one: AccessOperation) -> tuple[int, int | None, bool | None, bool]:
    if one.found is False and not one.makes:
        return one.requested_us, one.done_us, False, False
    return one.requested_us, one.done_us, one.found, one.makes
