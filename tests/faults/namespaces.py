"""Runs each node as a separate host: a network namespace on a bridge that the test makes and removes.

Packets are lost one way when a host has a wrong hardware address for another, and hosts are lost when their
link is pulled. A link may also be slow (tc), or lose some packets (iptables). Unlike the proxy, this also
loses TCP's own packets that keep a connection alive or end it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from testkit.cluster import random_uuid
from testkit.node import Controller
from tests.faults.proxy import Link
from tests.faults.quorum import VOTERS, FaultyQuorum

_PORT = 9093
_NOBODY = "02:00:00:00:00:99"
_RANDOM = ("-m", "statistic", "--mode", "random", "--probability")
# A packet of 1,000 bytes takes 60 ms. What would wait longer than the latency is lost.
_SLOW = ("tbf", "rate", "128kbit", "burst", "2kb", "latency", "400ms")


class NotPermitted(Exception):
    """This machine does not let the test make network namespaces; the text names the failed step."""


def _ip(*words: object) -> None:
    _run("ip", *words)


def _run(*words: object) -> None:
    command = list(map(str, words))
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
        self._slow: set[int] = set()
        self._lossy: set[int] = set()
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

    @property
    def gateway(self) -> str:
        """The address of the test's own host, which is never cut off."""
        return f"{self._net}.254"

    def within(self, node_id: int, command: Callable[[], Sequence[str]]) -> Callable[[], Sequence[str]]:
        """The command of a node, run on its host."""
        return lambda: ["ip", "netns", "exec", self.namespace(node_id), *command()]

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

    def slow(self, node_id: int) -> None:
        """Let a host's packets of both directions wait for each other until `heal`."""
        self._slow.add(node_id)
        _run("tc", "-n", self.namespace(node_id), "qdisc", "add", "dev", "eth0", "root", *_SLOW)
        _run("tc", "qdisc", "add", "dev", self._link(node_id), "root", *_SLOW)

    def lose(self, node_id: int, share: float) -> None:
        """Lose a share of the packets that a host sends, and of those that it gets, until `heal`."""
        self._lossy.add(node_id)
        for chain in ("INPUT", "OUTPUT"):
            self._filter(node_id, "-A", chain, *_RANDOM, share, "-j", "DROP")

    def _filter(self, node_id: int, *words: object) -> None:
        _ip("netns", "exec", self.namespace(node_id), "iptables", "-w", *words)

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
        for node_id in self._slow:
            _run("tc", "-n", self.namespace(node_id), "qdisc", "del", "dev", "eth0", "root")
            _run("tc", "qdisc", "del", "dev", self._link(node_id), "root")
        self._slow.clear()
        for node_id in self._lossy:
            self._filter(node_id, "-F")
        self._lossy.clear()
        for node_id in self._ids:
            _ip("link", "set", self._link(node_id), "up")


class HostedController(Controller):
    """A kraftd controller that runs in a namespace."""

    def __init__(self, hosts: Hosts, node_id: int, home: Path, properties: dict[str, object]) -> None:
        self.host = hosts.address(node_id)
        listener = {"listeners": f"CONTROLLER://{self.host}:{_PORT}"}
        super().__init__("kraftd", node_id, home, _PORT, {**properties, **listener})
        self.command_line = hosts.within(node_id, self.command)


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
