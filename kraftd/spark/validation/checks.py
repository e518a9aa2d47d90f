"""The checks of a log by name, with Spark or without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from kraftd.spark.errors import InputError
from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.input_log import are_small
from kraftd.spark.inputs.layout import CheckpointFile, Replica
from kraftd.spark.inputs.small_logs import DIVIDED_BYTES
from kraftd.spark.replay.divided import divide
from kraftd.spark.replay.source import Replay
from kraftd.spark.timeline import Timeline
from kraftd.spark.validation import comparisons, invariants, replayed_comparisons, replayed_invariants
from kraftd.spark.validation.divided_checks import DividedChecks
from kraftd.spark.validation.findings import comparable_checkpoints

Check = Callable[[], str | None]
Note = Callable[[str], None]

READABLE = "checksums, offsets and epochs"
"""The first check: unless it holds, the others would fail likewise."""


def checks_with_spark(timeline: Timeline, replicas: Sequence[Replica], note: Note) -> dict[str, Check]:
    """The checks of a timeline, in order. note takes what is no fault."""
    return _named(
        timeline,
        replicas,
        readable=partial(comparisons.unreadable, timeline),
        replica=lambda other: comparisons.replica_difference(timeline, other),
        checkpoint=lambda one: comparisons.checkpoint_difference(timeline, one, note),
        invariant=lambda name: invariants.first_break(timeline, name),
    )


def checks_here(extent: Extent, replicas: Sequence[Replica], note: Note) -> dict[str, Check] | None:
    """The same without Spark; None for replicas that need it."""
    if are_small(replicas):
        return checks_of_small_log(extent, replicas, note)
    return checks_of_divided_log(extent, replicas, note) if are_small(replicas, DIVIDED_BYTES) else None


def checks_of_divided_log(extent: Extent, replicas: Sequence[Replica], note: Note) -> dict[str, Check] | None:
    """The same of a log whose records of all but partitions fit into memory; None for any other.

    The log is read before the first check, which tells what is wrong with it.
    """
    try:
        divided = divide(extent, comparable_checkpoints(extent))
    except InputError as error:
        unread = error  # outlives the block

        def fail(*_: object) -> str | None:
            raise unread

        return _named(extent, replicas, fail, fail, fail, fail)
    if divided is None:
        return None
    checks = DividedChecks(divided, note)
    return _named(
        extent,
        replicas,
        readable=checks.unreadable,
        replica=partial(replayed_comparisons.replica_difference, extent),
        checkpoint=checks.checkpoint_difference,
        invariant=checks.first_break,
    )


def checks_of_small_log(extent: Extent, replicas: Sequence[Replica], note: Note) -> dict[str, Check]:
    """The same of a small log, which the first check decodes in this process."""

    @cache
    def replay() -> Replay:
        return Replay(extent)

    return _named(
        extent,
        replicas,
        readable=lambda: replayed_comparisons.unreadable(replay()),
        replica=partial(replayed_comparisons.replica_difference, extent),
        checkpoint=lambda one: replayed_comparisons.checkpoint_difference(replay(), one, note),
        invariant=lambda name: replayed_invariants.first_break(replay(), name),
    )


def _named(
    extent: Extent,
    replicas: Sequence[Replica],
    readable: Check,
    replica: Callable[[Replica], str | None],
    checkpoint: Callable[[CheckpointFile], str | None],
    invariant: Callable[[str], str | None],
) -> dict[str, Check]:
    checks = {READABLE: readable}
    for other in replicas:
        if other != extent.source.replica:
            checks[f"replica {other.path}"] = partial(replica, other)
    for one in comparable_checkpoints(extent):
        checks[f"checkpoint {one.path}"] = partial(checkpoint, one)
    for name in invariants.INVARIANTS:
        checks[name] = partial(invariant, name)
    return checks
