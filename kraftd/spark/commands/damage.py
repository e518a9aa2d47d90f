"""What mode PERMISSIVE left out of a log, by the table `damaged`."""

from __future__ import annotations

from kraftd.named_tuple import NamedTuple
from kraftd.spark.inputs.planning import TornTail
from kraftd.spark.inputs.storage import open_parquet


class Damage(NamedTuple):
    """How many pieces were not decoded, and which is the first, in words."""

    pieces: int
    first: str

    def __str__(self) -> str:
        return f"{self.pieces} {'piece' if self.pieces == 1 else 'pieces'}"


def find_damage(path: str, torn: TornTail | None) -> Damage | None:
    """The damage that a table lists, None without any. A torn tail is none."""
    table = open_parquet(path).to_table(["path", "position", "reason"])
    places = sorted(
        (row["path"], row["position"], row["reason"])
        for row in table.to_pylist()
        if row["position"] is not None
        and (torn is None or row["path"] != torn.path or row["position"] < torn.position)
    )
    if not places:
        return None
    file, position, reason = places[0]
    return Damage(len(places), f"{file}: byte {position}: {reason}")
