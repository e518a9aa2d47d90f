"""Modules that a daemon loads on demand, so that a start takes little CPU and memory."""

from __future__ import annotations

import subprocess
import sys

# For TLS, OAUTHBEARER, policies and authorizers from entry points, and fetched keys.
OF_SECURITY = {"cryptography", "jwt", "importlib.metadata", "http.client", "urllib.request"}
# For listeners of ordinary clients, and for tables and colours on a terminal.
OF_OTHERS = {
    "kraftd.metadata_topic_node",
    "kraftd.metadata_topic_node.node",
    "rich.console",
    "pygments",
    "structlog",
}
LATE = OF_SECURITY | OF_OTHERS


def test_optional_modules_are_loaded_only_if_configured() -> None:
    code = f"import sys, kraftd.runtime.daemon; print(*sorted(sys.modules.keys() & {LATE!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
