"""Modules that a daemon loads on demand, so that a start takes little CPU and memory."""

from __future__ import annotations

import subprocess
import sys

# For TLS, OAUTHBEARER, policies and authorizers from entry points, and fetched keys.
OF_SECURITY = {
    *("cryptography", "jwt", "importlib.metadata", "http.client", "urllib.request"),
    *(
        "kraftd.replica.credentials",
        "kraftd.security.sasl.scram_messages",
        "kraftd.security.sasl.oauthbearer",
    ),
}
# For listeners of ordinary clients, and for tables and colours on a terminal.
OF_OTHERS = {
    "kraftd.metadata_topic_node",
    "kraftd.metadata_topic_node.node",
    "rich.console",
    "pygments",
    "structlog",
    "shutil",
}
LATE = OF_SECURITY | OF_OTHERS


def test_optional_modules_are_loaded_only_if_configured() -> None:
    code = f"import sys, kraftd.runtime.daemon; print(*sorted(sys.modules.keys() & {LATE!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_no_table_of_international_names_is_loaded_for_plain_ones() -> None:
    code = (
        "import sys; from kraftd.runtime.peers.peer_hosts import addresses_of\n"
        "print(*addresses_of('127.0.0.1'), 'encodings.idna' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["127.0.0.1", "False"]
