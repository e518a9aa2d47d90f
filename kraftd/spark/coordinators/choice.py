"""Which tables of coordinators the inputs of a run can have, and which of a run's tables they are."""

from __future__ import annotations

from collections.abc import Sequence

from kraftd.history.points import Point
from kraftd.named_tuple import NamedTuple
from kraftd.spark.coordinators.partitions import OFFSETS, TRANSACTIONS, BrokerDirectories
from kraftd.spark.errors import InputError
from kraftd.spark.inputs.storage import is_local, paths_of
from kraftd.spark.tables.catalog import NAMES, known_tables
from kraftd.spark.tables.columns import COORDINATOR_TABLES
from kraftd.types import METADATA_PARTITION, METADATA_TOPIC

OF_GROUPS = ("offset_commits", "committed_offsets", "rebalances", "groups")
OF_TRANSACTIONS = ("transactions", "transactional_ids")


class Choice(NamedTuple):
    """The tables of the metadata log and those of coordinators that a run makes."""

    metadata: list[str]
    coordinators: list[str]
    directories: BrokerDirectories | None


def choose_tables(
    names: Sequence[str] | None, inputs: Sequence[str], as_of: Point | None, why_not: str
) -> Choice:
    """Divide the tables that a run asks for; for None, find all that its inputs tell.

    why_not is why this run cannot make tables of coordinators, or "". Raises InputError for a table that is
    none, or that these inputs do not have.
    """
    directories = None
    if not why_not and all(is_local(path) for path in paths_of(inputs)):
        directories = BrokerDirectories(paths_of(inputs))
    told = [] if directories is None else tables_in(directories)
    if names is None:
        with_time = as_of is None or as_of.offset is None
        has_metadata = not told or directories is None or (METADATA_TOPIC, METADATA_PARTITION) in directories
        return Choice(list(NAMES) if has_metadata else [], told if with_time else [], directories)
    given = [name.strip() for name in names if name.strip()]
    wanted = list(dict.fromkeys(name for name in given if name in COORDINATOR_TABLES))
    for name in wanted:
        if name not in told:
            raise InputError(
                f"--tables {name}: "
                + (why_not or "no input has the partitions that it is made of: give brokers' local log.dirs")
            )
    metadata = [name for name in given if name not in COORDINATOR_TABLES]
    return Choice(known_tables(metadata), wanted, directories)


def tables_in(directories: BrokerDirectories) -> list[str]:
    """The tables of those coordinators whose partitions are here."""
    found: list[str] = []
    if directories.coordinators(OFFSETS):
        found += OF_GROUPS
    if directories.coordinators(TRANSACTIONS):
        found += OF_TRANSACTIONS
    return found
