"""cordoned.log.dirs: directories of a broker that take no new replicas (KIP-1066)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kraftd.configdef.text import trim
from kraftd.controller.configs.resources import CORDONED_LOG_DIRS
from kraftd.controller.configs.validation import invalid_config
from kraftd.controller.context import Context
from kraftd.metadata.metadata_version import allows_cordoned_directories

_COMMA = re.compile(r"\s*,\s*", re.ASCII)


def check_cordoned_log_dirs(
    ctx: Context, name: str, value: str | None, current: Mapping[str, str], *, forwarded: bool
) -> None:
    """Raise Refusal for an invalid new value of a broker's ``cordoned.log.dirs``; other configs pass.

    Only the broker knows its directories' paths. So a change that the broker has not forwarded may remove
    entries but add none.
    """
    if name != CORDONED_LOG_DIRS:
        return
    if not allows_cordoned_directories(ctx.image.metadata_version):
        raise invalid_config(f"{CORDONED_LOG_DIRS} needs metadata.version 4.3-IV0 or later.")
    if forwarded or value is None or not trim(value):
        return
    before = current.get(CORDONED_LOG_DIRS)
    allowed = set() if before is None else set(_COMMA.split(trim(before)))
    if not allowed.issuperset(_COMMA.split(trim(value))):
        raise invalid_config(
            f"A controller only takes entries of {CORDONED_LOG_DIRS} away; to add one, ask the broker."
        )
