"""The checks of a log by name, with Spark or without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

from kraftd.spark.inputs.extent import Extent
from kraftd.spark.inputs.layout import CheckpointFile, Replica
from kraftd.spark.replay.source import Replay
from kraftd.spark.timeline import Timeline
from kraftd.spark.validation import comparisons, invariants, replayed_comparisons, replayed_invariants
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


def checks_of_small_log(extent: Extent, replicas: Sequence[Replica], note: Note) -> dict[str, Check]:
    """The same of a small log, which the first check decodes in this process."""

    @cache
    def replay() -> Replay:
        return Replay(extent)

    return _named(
        extent,
        replicas,
        readable=lambda: replayed_comparisons.unreadable(replay()),
        replica=lambda other: replayed_comparisons.replica_difference(replay(), other),
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
