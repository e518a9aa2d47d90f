"""Runs each controller as a separate host: a network namespace on a bridge that the test makes and removes.

Packets are lost one way when a host has a wrong hardware address for another, and hosts are lost when their
link is pulled. Unlike the proxy, this also loses TCP's own packets that keep a connection alive or end it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from testkit.cluster import random_uuid
from testkit.node import Controller
from tests.faults.proxy import Link
from tests.faults.quorum import VOTERS, FaultyQuorum

_PORT = 9093
_NOBODY = "02:00:00:00:00:99"


class NotPermitted(Exception):
    """This machine does not let the test make network namespaces; the text names the failed step."""


def _ip(*words: object) -> None:
    command = ["ip", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotPermitted(f"{' '.join(command)}: {done.stderr.strip()}")


class Hosts:
    """A bridge and a namespace for every node. Raises NotPermitted if it cannot be made."""

    def __init__(self, ids: Sequence[int]) -> None:
        if shutil.which("ip") is None:
            raise NotPermitted("no ip on the PATH")
        if os.geteuid() != 0:
            raise NotPermitted("network namespaces need root")
        own = os.getpid()
        self._bridge, self._net = f"kfb{own}", f"10.213.{own % 250}"
        self._ids = list(ids)
        self._cut: set[Link] = set()
        try:
            _ip("link", "add", self._bridge, "type", "bridge")
            _ip("addr", "add", f"{self._net}.254/24", "dev", self._bridge)
            _ip("link", "set", self._bridge, "up")
            for node_id in ids:
                self._build(node_id)
        except NotPermitted:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<Hosts {self._net}.0/24 {self._ids} cut {sorted(self._cut)}>"

    def _build(self, node_id: int) -> None:
        space, link = self.namespace(node_id), self._link(node_id)
        _ip("netns", "add", space)
        _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
        _ip("link", "set", link, "master", self._bridge, "up")
        _ip("-n", space, "addr", "add", f"{self.address(node_id)}/24", "dev", "eth0")
        _ip("-n", space, "link", "set", "lo", "up")
        _ip("-n", space, "link", "set", "eth0", "up")

    def namespace(self, node_id: int) -> str:
        return f"{self._bridge}-{node_id}"

    def address(self, node_id: int) -> str:
        return f"{self._net}.{node_id}"

    def _link(self, node_id: int) -> str:
        return f"{self._bridge[2:]}v{node_id}"

    def close(self) -> None:
        for node_id in self._ids:
            with suppress(NotPermitted):
                _ip("link", "del", self._link(node_id))  # otherwise its namespace would take it along later
            with suppress(NotPermitted):
                _ip("netns", "del", self.namespace(node_id))
        with suppress(NotPermitted):
            _ip("link", "del", self._bridge)

    def cut(self, *links: Link) -> None:
        """Lose packets in these directions until `heal`."""
        for one, other in links:
            self._cut.add((one, other))
            _ip(
                *("-n", self.namespace(one), "neigh", "replace", self.address(other)),
                *("lladdr", _NOBODY, "nud", "permanent", "dev", "eth0"),
            )

    def pull(self, node_id: int) -> None:
        """Take a host off the network."""
        _ip("link", "set", self._link(node_id), "down")

    def reset(self, node_id: int) -> int:
        """Let the operating system reset all of a host's connections; return how many."""
        within = ["ip", "netns", "exec", self.namespace(node_id)]
        done = subprocess.run(
            [*within, "ss", "-HKt", "state", "established"], capture_output=True, text=True, check=True
        )
        return len(done.stdout.splitlines())

    def heal(self) -> None:
        for one, other in self._cut:
            _ip("-n", self.namespace(one), "neigh", "del", self.address(other), "dev", "eth0")
        self._cut.clear()
        for node_id in self._ids:
            _ip("link", "set", self._link(node_id), "up")


class HostedController(Controller):
    """A kraftd controller that runs in a namespace."""

    def __init__(self, hosts: Hosts, node_id: int, home: Path, properties: dict[str, object]) -> None:
        self.host, self._namespace = hosts.address(node_id), hosts.namespace(node_id)
        listener = {"listeners": f"CONTROLLER://{self.host}:{_PORT}"}
        super().__init__("kraftd", node_id, home, _PORT, {**properties, **listener})

    def command(self) -> Sequence[str]:
        return ["ip", "netns", "exec", self._namespace, *super().command()]


class HostedQuorum(FaultyQuorum):
    """Three voters on three hosts; the test's own host is never cut off."""

    def __init__(self, home: Path, hosts: Hosts, *, static: bool = False) -> None:
        self.hosts = hosts
        super().__init__(home, static=static, proxied=False)
        servers = {node_id: f"{hosts.address(node_id)}:{_PORT}" for node_id in VOTERS}
        if static:
            voters = ",".join(f"{node_id}@{server}" for node_id, server in servers.items())
            self._quorum = {"controller.quorum.voters": voters}
        else:
            self._quorum = {"controller.quorum.bootstrap.servers": ",".join(servers.values())}
        self.initial = ",".join(
            f"{node_id}@{hosts.address(node_id)}:{_PORT}:{random_uuid()}" for node_id in VOTERS
        )
        for one in self.controllers.values():
            one.properties |= self._quorum
            one.write_properties()

    def _controller(self, node_id: int, kind: object, port: int) -> Controller:
        home = self.home / f"controller-{node_id}"
        return HostedController(self.hosts, node_id, home, dict(self._controller_properties))

    def heal(self) -> None:
        self.hosts.heal()
        super().heal()
