"""What an operation of a shard wants written, and what follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from kraftd.groups.records import CoordinatorRecord
from kraftd.wire.error_code import ErrorCode

After = Callable[[ErrorCode | None], "Outcome | None"]


class Outcome(Struct, gc=False):
    """What a step wants written, and its answer once that is committed.

    replayed: the records change the state at once, and an append that fails takes them back; records of
    classic groups say what the state is already, and transactions change when their records are committed.
    after is called when the records are committed, or with the error if they are not. atomic: the records go
    into one batch. timeout_ms: how long they may wait to be committed, if not as long as others of the shard.
    """

    records: list[CoordinatorRecord] = []
    response: Any = None
    replayed: bool = True
    after: After | None = None
    atomic: bool = True
    timeout_ms: int | None = None
