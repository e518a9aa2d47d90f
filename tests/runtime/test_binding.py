"""Which addresses a listener binds, and the error if it cannot."""

from __future__ import annotations

import errno
import socket
from contextlib import closing
from pathlib import Path

import pytest

from kraftd.runtime.connections.binding import listening_socket, remedy
from testkit.process import free_port
from tests.cli.run import run, started, write_config

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"


def reaches(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), 5).close()
    except OSError:
        return False
    return True


def test_an_empty_host_means_every_address_of_both_families() -> None:
    with closing(listening_socket("", 0, 5)) as sock:
        port = sock.getsockname()[1]
        assert reaches("127.0.0.1", port) and reaches("::1", port)


def test_a_given_host_means_that_address_only() -> None:
    with closing(listening_socket("127.0.0.1", 0, 5)) as four:
        assert not reaches("::1", four.getsockname()[1])
    with closing(listening_socket("::1", 0, 5)) as six:
        assert not reaches("127.0.0.1", six.getsockname()[1])


def test_a_port_in_use_is_not_shared() -> None:
    with closing(listening_socket("", 0, 5)) as sock, pytest.raises(OSError) as error:
        listening_socket("", sock.getsockname()[1], 5)
    assert error.value.errno == errno.EADDRINUSE
    assert remedy(error.value, "listeners", "", 9093).startswith("Stop what uses the address")


@pytest.mark.parametrize(
    ("error", "host", "port", "hint"),
    [
        (socket.gaierror(-2, "unknown"), "nohost", 9093, "No address is known for nohost"),
        (OSError(errno.EADDRNOTAVAIL, ""), "10.9.8.7", 9093, "This machine has no address 10.9.8.7"),
        (OSError(errno.EACCES, ""), "", 443, "Ports below 1024 need the capability CAP_NET_BIND_SERVICE"),
        (OSError(errno.EPERM, ""), "", 80, "Ports below 1024 need the capability CAP_NET_BIND_SERVICE"),
        (OSError(errno.EACCES, ""), "", 9093, "Correct the address in listeners"),
        (OSError(errno.EADDRINUSE, ""), "", 9093, "Stop what uses the address"),
        (OSError(errno.EAFNOSUPPORT, ""), "::1", 9093, "This machine has no addresses of that family"),
        (OSError(errno.EINVAL, ""), "fe80::1", 9093, "A link-local address needs its interface"),
        (OSError(errno.EINVAL, ""), "10.0.0.1", 9093, "Correct the address in listeners"),
    ],
)
def test_each_cause_of_a_failed_bind_has_a_hint(error: OSError, host: str, port: int, hint: str) -> None:
    assert remedy(error, "listeners", host, port).startswith(hint)


def test_a_daemon_without_a_host_serves_both_families(tmp_path: Path) -> None:
    port = free_port()
    config = write_config(
        tmp_path,
        port,
        listeners=f"CONTROLLER://:{port}",
        advertised__listeners=f"CONTROLLER://127.0.0.1:{port}",
        max__connections__per__ip__overrides="127.0.0.1:0",
        kraftd__metrics__listener=f":{(metrics := free_port())}",
    )
    assert run("format", "-c", config, "-t", CLUSTER_ID, "--standalone").code == 0
    with started(config):
        assert reaches("::1", metrics) and reaches("127.0.0.1", metrics)
        assert run("quorum", "describe", "--bootstrap", f"[::1]:{port}").code == 0
        # The limit of an IPv4 address applies although the socket is IPv6's.
        assert run("quorum", "describe", "--bootstrap", f"127.0.0.1:{port}", "--timeout", "1").code == 5


def test_a_host_that_does_not_resolve_is_reported_at_the_start(tmp_path: Path) -> None:
    config = write_config(tmp_path, listeners="CONTROLLER://nohost.invalid:9093")
    assert run("format", "-c", config, "-t", CLUSTER_ID, "--no-initial-controllers").code == 0
    done = run("start", config)
    assert (
        done.code == 1 and "No address is known for nohost.invalid; correct the host in listeners" in done.err
    )
