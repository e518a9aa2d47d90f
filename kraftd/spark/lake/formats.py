"""Opens the lake of a format. Its library is loaded here alone, and only when it is needed."""

from __future__ import annotations

from kraftd.spark.errors import InputError
from kraftd.spark.lake.tables import Lake


def open_lake(kind: str, directory: str, catalog: str | None = None) -> Lake:
    """The lake of a format in a directory. catalog is that of PyIceberg's configuration.

    Raises InputError without the format's library.
    """
    try:
        if kind == "delta":
            from kraftd.spark.lake.delta import DeltaLake

            return DeltaLake(directory)
        from kraftd.spark.lake.iceberg import IcebergLake

        return IcebergLake(directory, catalog)
    except ModuleNotFoundError as missing:
        raise InputError(
            f"--format {kind}: {missing.name} is not installed: pip install 'kraftd[lake]'"
        ) from None
