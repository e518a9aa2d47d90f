"""Messages to bytes and back, by the engine that ``kraftd.wire.engine`` has chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftd.wire.engine import C_ENGINE
from kraftd.wire.primitives import OWN_PART_BYTES

__all__ = ["OWN_PART_BYTES", "decode", "decode_prefix", "encode", "encode_bytes", "encode_framed"]

# The functions of an engine are called directly: a wrapper would cost as much as they do.
if TYPE_CHECKING or C_ENGINE is None:
    from kraftd.wire.python_codec import decode, decode_prefix, encode, encode_bytes, encode_framed
else:
    from kraftd.wire._engine import decode, decode_prefix, encode, encode_bytes, encode_framed
