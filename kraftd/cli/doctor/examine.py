"""The examination: the probes in their order."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from kraftd.cli.doctor import broker_probe, page_probe, peer_probe, quorum_probe
from kraftd.cli.doctor.findings import Finding, Level, note, ok, problem
from kraftd.cli.doctor.judge_peers import (
    Answer,
    judge_name,
    judge_peer,
    judge_port,
    judge_versions,
)
from kraftd.cli.doctor.judge_quorum import Member, judge_cluster_id
from kraftd.cli.quorum.leader import endpoint_address, parse_addresses
from kraftd.types import address_text

if TYPE_CHECKING:
    from kraftd.cli.doctor.peer_probe import Address
    from kraftd.config import DaemonConfig
    from kraftd.metadata_dir.files.meta_properties import MetaProperties

TLS_PROTOCOLS = (1, 3)  # SSL and SASL_SSL, as an endpoint has them


async def examine(
    file: str | None, bootstrap: str | None, metrics: str | None, timeout_s: float
) -> list[Finding]:
    """All findings of a node by its file, of a quorum by its addresses, or of both; and of the brokers with
    these metrics listeners.
    """
    found: list[Finding] = []
    if metrics is not None:
        found += await page_probe.probe_pages(parse_addresses(metrics, "--metrics"), timeout_s)
    config = None if file is None else _load(file, found)
    addresses = parse_addresses(bootstrap) if bootstrap is not None else []
    if config is None:
        if addresses:
            examination = _Examination(None, None, timeout_s, found)
            await examination.examine_quorum(await examination.controllers_behind(addresses), "node")
        return found
    from kraftd.cli.doctor.disk_probe import identity_of, probe_directories

    log_in_as(config, found)
    found += probe_directories(config)
    examination = _Examination(config, identity_of(config), timeout_s, found)
    await examination.probe_ports()
    found[:] = page_probe.join_full_disks(found, await page_probe.probe_page(config, timeout_s))
    addresses = await examination.controllers_behind(addresses)
    await examination.examine_quorum(addresses or configured_servers(config))
    return found


def _load(file: str, found: list[Finding]) -> DaemonConfig | None:
    from kraftd.config import ConfigError, load

    try:
        config = load(file)
    except ConfigError as error:
        found += [problem("config", file, text, "correct the file") for text in error.problems]
        return None
    found += [note("config", file, text) for text in config.warnings]
    found.append(ok("config", file, f"it configures node {config.node_id}"))
    return config


def log_in_as(config: DaemonConfig, found: list[Finding]) -> None:
    """Without --command-config, log in to other controllers as this node does."""
    from kraftd.client.connection import default_setup
    from kraftd.client.secured import secured
    from kraftd.config import ConfigError

    client = config.security.client
    if default_setup.get() is not None or (client.tls is None and not client.mechanism):
        return
    try:
        default_setup.set(secured(client))
    except (ConfigError, OSError) as error:
        found.append(
            problem("config", "security", str(error), "correct the ssl.* and sasl.* keys of the file")
        )


def configured_servers(config: DaemonConfig) -> list[Address]:
    """The quorum's addresses from a file."""
    return list(dict.fromkeys([*config.quorum_voters.values(), *config.quorum_bootstrap_servers]))


class _Examination:
    """The part of the examination that uses the network, with its facts about this machine's node."""

    def __init__(
        self,
        config: DaemonConfig | None,
        identity: MetaProperties | None,
        timeout_s: float,
        found: list[Finding],
    ) -> None:
        self._config = config
        self._identity = identity
        self._timeout_s = timeout_s
        self._found = found
        self._own: set[Address] = set()  # where this node listens or advertises a listener
        self._ports_everywhere: set[int] = set()  # of listeners at every address of this machine
        self._answering: list[Address] = []  # those of them that answer
        self._listening: set[Address] = set()  # all at which a connection was accepted
        self._named: set[str] = set()
        self._answers: dict[Address, Answer] = {}  # of peers: a node logs a second probe

    @property
    def _cluster_id(self) -> str | None:
        return self._identity.cluster_id if self._identity is not None else None

    async def probe_ports(self) -> None:
        """Each listener of the node: free, this node's, or another's."""
        assert self._config is not None
        config = self._config
        advertised = (*config.advertised_listeners, *config.broker_listeners)
        self._own = {(one.host, one.port) for one in advertised}
        if config.node_id in config.quorum_voters:
            self._own.add(config.quorum_voters[config.node_id])
        for one in advertised:
            if one.host:
                await self._resolves(one.host)  # peers and clients connect to it
        held_up = self._held_up()
        for one in config.listeners:
            if not one.port:
                continue  # the system chooses it
            address = (one.host if one.host not in ("", "0.0.0.0", "::") else "localhost", one.port)
            self._own |= {address, (one.host, one.port)}
            if one.host != address[0]:
                self._ports_everywhere.add(one.port)
            if not await self._resolves(address[0]):
                continue
            refused, answer = peer_probe.bind_refusal(one.host, one.port), None
            if refused == "Address already in use":
                answer = await peer_probe.probe(address, self._timeout_s, is_own=bool(held_up))
                if answer.listens:
                    self._listening |= self._own  # of the same process
            controls = one.listener in config.controller_listener_names
            at = address_text(address)
            finding = judge_port(
                at, refused, answer, self._cluster_id, for_clients=not controls, held_up=held_up
            )
            self._found.append(finding)
            if controls and answer is not None and not answer.failure and not finding.is_wrong:
                self._answering.append(address)
                self._found += judge_versions(answer, None)

    def _held_up(self) -> str:
        """What to do if this node runs and does not answer; "" if it does not run."""
        from kraftd.cli.doctor.disk_probe import DISK_FULL
        from kraftd.metadata_dir.in_use import lock_holder

        assert self._config is not None
        directory = self._config.metadata_log_dir
        if lock_holder(directory) is None:
            return ""
        if any(one.subject == directory and DISK_FULL in one.text for one in self._found):
            return "make room on its disk, which is full: it waits for that"
        return "read its log: it may be stopping, or be held up by a full disk"

    async def controllers_behind(self, addresses: list[Address]) -> list[Address]:
        """The addresses with the controllers that brokers name, in place of those brokers (KIP-836)."""
        others = [one for one in addresses if not self._is_own(one)]
        controllers = await quorum_probe.controllers_behind(
            await self._probed(others), self._timeout_s, self._found
        )
        return list(dict.fromkeys([*(one for one in addresses if one not in others), *controllers]))

    async def _probed(self, addresses: list[Address]) -> dict[Address, Answer]:
        """What each address answers, which is asked once."""
        unasked = [one for one in dict.fromkeys(addresses) if one not in self._answers]
        answers = await peer_probe.probe_all(unasked, self._timeout_s)
        self._answers |= zip(unasked, answers, strict=True)
        return {one: self._answers[one] for one in addresses}

    async def examine_quorum(self, addresses: list[Address], kind: str = "controller") -> None:
        """Probe the peers at these addresses, the leader that one of them names, and that leader's voters.

        `kind` is the word for what is known of the nodes there.
        """
        answering = [*self._answering, *await self._probe_peers(addresses)]
        if not answering:
            places = ", ".join(map(address_text, dict.fromkeys(addresses)))
            why = f"no {kind} answers at {places}" if addresses else "no controller is known"
            self._found.append(note("voters", "quorum", f"the quorum was not asked: {why}"))
            return
        text = ",".join(address_text(one) for one in dict.fromkeys(answering))
        leader = await quorum_probe.probe_quorum(text, self._timeout_s)
        if isinstance(leader, Finding):
            self._found.append(leader)
            return
        config, identity = self._config, self._identity
        me, session_timeout_ms = None, quorum_probe.DEFAULT_SESSION_TIMEOUT_MS
        if config is not None:
            session_timeout_ms = config.broker_session_timeout_ms
            directory_id = identity.directory_id if identity is not None else None
            if config.is_controller:
                me = Member(config.node_id, directory_id, bool(self._answering))
            if self._cluster_id is not None:
                at = config.metadata_log_dir
                self._found.append(judge_cluster_id(at, self._cluster_id, leader.quorum.cluster_id))
        static = config.quorum_voters if config is not None else {}
        await self._probe_peers([one for one in endpoints_of(leader) if one not in addresses])
        running = {
            node_id
            for node_id, texts in leader.quorum.endpoints.items()
            if self._listening.intersection(addresses_of(texts))
        }
        self._found += quorum_probe.judge_leader(leader, session_timeout_ms, me, static, running)
        own_id = None if config is None else config.node_id
        full = {one.subject for one in self._found if one.area == "disk" and one.level is Level.PROBLEM}
        self._found += await broker_probe.probe_brokers(text, self._timeout_s, own_id, full)

    async def _probe_peers(self, addresses: list[Address]) -> list[Address]:
        """Judge each address that is not this node's; return those at which a controller answers."""
        others = [one for one in dict.fromkeys(addresses) if not self._is_own(one)]
        resolved = [one for one in others if await self._resolves(one[0])]
        expects_tls = self._config is not None and any(
            one.security_protocol in TLS_PROTOCOLS for one in self._config.advertised_listeners
        )
        answering = []
        for address, answer in (await self._probed(resolved)).items():
            if answer.listens:
                self._listening.add(address)
            finding = judge_peer(answer, self._cluster_id, expects_tls=expects_tls)
            self._found.append(finding)
            self._found += judge_versions(answer, self._supported(answer))
            if not answer.failure and not finding.is_wrong:
                answering.append(address)
        return answering

    def _is_own(self, address: Address) -> bool:
        """Return whether an address is this node's: one that it advertises, or one of this machine's with its
        port.
        """
        host, port = address
        if address in self._own:
            return True
        return port in self._ports_everywhere and peer_probe.bind_refusal(host, 0) is None

    def _supported(self, answer: Answer) -> dict[str, tuple[int, int]] | None:
        """The features that this kraftd supports, if there is a file of a node of that quorum."""
        if self._config is None or answer.failure:
            return None
        from kraftd.metadata.features import supported_features

        return supported_features(unstable=self._config.unstable_feature_versions_enable)

    async def _resolves(self, host: str) -> bool:
        """Return whether a host has an address; a failure is reported once."""
        failure = await peer_probe.resolve(host)
        if host not in self._named:
            self._named.add(host)
            self._found.append(judge_name(host, failure))
        return failure is None


def endpoints_of(leader: quorum_probe.Leader) -> list[Address]:
    """The first endpoint of each voter, as the leader knows it."""
    return [one for texts in leader.quorum.endpoints.values() for one in addresses_of(texts[:1])]


def addresses_of(texts: Iterable[str]) -> list[Address]:
    """The addresses in texts of `endpoint_text`; an unreadable one is left out, as no probe could use it."""
    found = []
    for text in texts:
        with suppress(ValueError):
            found.append(endpoint_address(text))
    return found
