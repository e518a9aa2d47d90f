"""A client's file with a byte order mark is not mistaken for one without security."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.client.secured import load_client_security
from kraftd.config import ConfigError

LINES = b"security.protocol=PLAINTEXT\n"


def test_a_byte_order_mark_before_a_key_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(b"\xef\xbb\xbf" + LINES)
    with pytest.raises(
        ConfigError, match=r"^security.protocol: the file begins with a UTF-8 byte order mark"
    ):
        load_client_security(path)
    path.write_bytes(b"\xef\xbb\xbf# a client\n" + LINES)
    load_client_security(path)
