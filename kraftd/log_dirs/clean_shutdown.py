"""`.kafka_cleanshutdown`: a directory's logs were flushed and closed; with the broker's epoch (KIP-966)."""

from __future__ import annotations

import json

FILE_NAME = ".kafka_cleanshutdown"


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    """Content of the file."""
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(data: bytes) -> int | None:
    """The broker epoch in the file; None without one. The file counts all the same."""
    try:
        found = json.loads(data)
    except ValueError:
        return None
    epoch = found.get("brokerEpoch") if isinstance(found, dict) else None
    return epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else None
