"""The options of `spark.read.format("kraft")` and `spark.readStream.format("kraft")`.

path or paths (a JSON list); mode (FAILFAST, PERMISSIVE); startingOffset (earliest, latest or a number) and
endingOffset (the first not read); highWatermark; splitBytes; maxRowsPerTrigger; decoder (columns, records);
showSecrets (false, true). table: a table instead of records, with asOf and scratch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from kraftd.spark.errors import InputError
from kraftd.spark.inputs.storage import is_listener, paths_of

_KNOWN = {
    name.lower(): name
    for name in (
        "path",
        "paths",
        "mode",
        "startingOffset",
        "endingOffset",
        "highWatermark",
        "splitBytes",
        "maxRowsPerTrigger",
        "decoder",
        "showSecrets",
        "table",
        "asOf",
        "scratch",
    )
}
_OF_TABLES = frozenset({"asof"})
_OF_RECORDS = frozenset(
    {"startingoffset", "endingoffset", "splitbytes", "maxrowspertrigger", "showsecrets", "decoder"}
)
_SPARKS_OWN = frozenset({"__paths__", "header"})


@dataclass(frozen=True)
class SourceOptions:
    """The options, checked. starting_offset is None for earliest, -1 for latest."""

    paths: tuple[str, ...]
    permissive: bool
    starting_offset: int | None
    ending_offset: int | None
    high_watermark: int | None
    split_bytes: int | None
    max_rows: int | None
    columns: bool
    show_secrets: bool = False
    table: str | None = None
    as_of: str | None = None
    scratch: str | None = None


def parse_options(raw: Mapping[str, str]) -> SourceOptions:
    """Parse Spark's options, whose names ignore case. Raises InputError."""
    options = {key.lower(): raw[key] for key in raw}
    table = options.get("table", "records")
    for key in options:
        if table != "records" and key in _OF_RECORDS:
            raise InputError(
                f"option {_KNOWN[key]} is for records, not for table {table}; asOf is for tables"
            )
        if table == "records" and key in _OF_TABLES:
            raise InputError(f"option {_KNOWN[key]} is for tables; records have startingOffset, endingOffset")
        if key not in _KNOWN and key not in _SPARKS_OWN:
            raise InputError(f"option {key} is not known; known are {', '.join(_KNOWN.values())}")
    mode = options.get("mode", "FAILFAST").upper()
    if mode not in ("FAILFAST", "PERMISSIVE"):
        raise InputError(f"mode={options['mode']}: FAILFAST and PERMISSIVE are known")
    decoder = options.get("decoder", "columns")
    if decoder not in ("columns", "records"):
        raise InputError(f"decoder={decoder}: columns and records are known")
    secrets = options.get("showsecrets", "false").lower()
    if secrets not in ("false", "true"):
        raise InputError(f"showSecrets={secrets}: false and true are known")
    starting = options.get("startingoffset", "earliest")
    return SourceOptions(
        _paths(options),
        mode == "PERMISSIVE",
        {"earliest": None, "latest": -1}.get(starting)
        if starting in ("earliest", "latest")
        else _number(options, "startingOffset"),
        _number(options, "endingOffset"),
        _number(options, "highWatermark"),
        _number(options, "splitBytes", least=1),
        _number(options, "maxRowsPerTrigger", least=1),
        decoder == "columns",
        secrets == "true",
        options.get("table"),
        options.get("asof"),
        options.get("scratch"),
    )


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    text = options.get("paths") or options.get("__paths__")
    if text is None:
        path = options.get("path")
        if not path:
            raise InputError("no path: say load(PATH), or option paths, a JSON list of several replicas")
        if is_listener(path) and "table" in options:
            return (path,)
        return tuple(paths_of([path]))
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not found or not all(isinstance(path, str) for path in found):
        raise InputError(f"paths={text}: a JSON list of paths is expected")
    return tuple(paths_of(found))


def _number(options: Mapping[str, str], name: str, least: int = 0) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError:
        raise InputError(f"{name}={text} is not a number") from None
    if value < least:
        raise InputError(f"{name}={text}: at least {least} is expected")
    return value
