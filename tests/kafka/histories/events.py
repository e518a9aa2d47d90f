"""Random events for the controllers of a quorum in use, one after the other.

After each event the quorum is whole again. The first controller keeps its address, where brokers ask for the
leader, and its disk, which has the whole history.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from kraftd.log.disk import RealDisk
from kraftd.metadata_dir.files.meta_properties import read_meta_properties
from kraftd.types import uuid_text
from testkit.java import tools
from testkit.node import Controller, Kind, kraftd_command
from testkit.process import free_port, wait_until
from testkit.quorum import Quorum

FEWEST, MOST = 3, 5
SIGTERM = 15


def own_directory_id(one: Controller) -> str:
    """The directory id with which a controller's directory was formatted."""
    found = read_meta_properties(RealDisk(), str(one.data))
    assert found is not None and found.directory_id is not None
    return uuid_text(found.directory_id)


class History:
    """Plays a quorum; `played` are the events so far, `kinds` those that controllers have and become.

    With `auto_join` controllers become voters by themselves (KIP-1186).
    """

    def __init__(self, quorum: Quorum, seed: int, *kinds: Kind, auto_join: bool = False) -> None:
        self.quorum, self.random, self._kinds = quorum, random.Random(seed), kinds
        self._auto_join = auto_join
        self.played: list[str] = []
        self._events = self.EVENTS if quorum.static else (*self.EVENTS, *self.OF_DYNAMIC_QUORUMS)
        if len(kinds) > 1:
            self._events += (History.change_kind,) * 4
        self._anchor = min(quorum.controllers)
        self._copies: dict[int, Path] = {}
        self._next_id = max(quorum.controllers) + 1

    def __repr__(self) -> str:
        return f"<History {'; '.join(self.played)}>"

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.random.choice(self._events)(self)
            self.quorum.wait_for_voters(*self.quorum.controllers)

    # --- the target of an event

    def _note(self, what: str) -> None:
        self.played.append(what)

    def _any(self) -> Controller:
        return self.random.choice(list(self.quorum.controllers.values()))

    def _follower(self) -> Controller:
        leader = self.quorum.wait_for_leader()
        return self.random.choice([one for id_, one in self.quorum.controllers.items() if id_ != leader])

    def _start(self, *controllers: Controller) -> None:
        for controller in controllers:
            controller.start()
        for controller in controllers:
            controller.wait_ready()

    # --- processes

    def kill_leader(self) -> None:
        epoch, leader = self.quorum.epoch(), self.quorum.controller
        self._note(f"kill leader {leader.node_id}")
        leader.kill()
        assert self.quorum.wait_for_leader(after_epoch=epoch) != leader.node_id
        self._start(leader)

    def kill_in_a_loop(self) -> None:
        one = self._any()
        self._note(f"kill {one.node_id} again and again")
        for _ in range(4):
            one.kill()
            one.start()
        one.wait_ready()

    def stop(self) -> None:
        one = self._any()
        self._note(f"stop {one.node_id}")
        # Kafka's metadata loader may read its log after its raft client has closed it: a fatal fault, exit 1.
        assert one.stop() in ((0,) if one.kind == "kraftd" else (128 + SIGTERM, 1))
        self._start(one)

    def change_kind(self) -> None:
        """A step of a migration, to the other kind."""
        one = self._any()
        one.stop()
        one.kind = self._kinds[self._kinds.index(one.kind) - 1]
        self._note(f"{one.node_id} becomes {one.kind}")
        self._start(one)

    def freeze(self) -> None:
        epoch, leader = self.quorum.epoch(), self.quorum.controller
        self._note(f"freeze leader {leader.node_id}")
        leader.freeze()
        self.quorum.wait_for_leader(after_epoch=epoch)
        leader.thaw()

    def kill_all(self) -> None:
        controllers = list(self.quorum.controllers.values())
        self.random.shuffle(controllers)
        self._note(f"kill all, start {[one.node_id for one in controllers]}")
        for one in controllers:
            one.kill()
        self._start(*controllers)

    def restart_a_broker(self) -> None:
        broker = self.random.choice(list(self.quorum.brokers.values()))
        self._note(f"kill broker {broker.node_id}")
        broker.kill()
        broker.start()
        broker.wait_ready()

    # --- directories

    def copy_directory(self) -> None:
        one = self._any()
        self._note(f"copy {one.node_id}")
        one.stop()
        copy = self._copies[one.node_id] = one.home / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(one.data, copy)
        self._start(one)

    def restore_copy(self) -> None:
        one = self._follower()
        copy = self._copies.get(one.node_id)
        if copy is None:
            return self.copy_directory()
        self._note(f"restore {one.node_id}")
        one.kill()
        shutil.rmtree(one.data)
        shutil.copytree(copy, one.data)
        self._start(one)
        return None

    def wipe(self) -> None:
        """A new disk: in a dynamic quorum it makes another voter, which must replace the old one."""
        one = self._follower()
        if one.node_id == self._anchor:
            return self.restore_copy()
        self._note(f"wipe {one.node_id}")
        one.kill()
        self.quorum.wait_for_leader()
        old = self._directory_id(one.node_id)
        shutil.rmtree(one.data)
        self._copies.pop(one.node_id, None)
        one.format(self.quorum.cluster_id, *([] if self.quorum.static else ["--no-initial-controllers"]))
        self._start(one)
        if self.quorum.static:
            return None
        if not self._auto_join:
            self._ask_to_remove(one.node_id, old)
        self._make_voter(one)
        return None

    # --- voters

    def move(self) -> None:
        one = self._any()
        if one.node_id == self._anchor:
            return self.kill_leader()
        self._note(f"move {one.node_id}")
        one.stop()
        one.move(free_port())
        self._start(one)
        wait_until(lambda: one.address in self.quorum.voters_addresses(), f"voters know {one.address}")
        return None

    def add(self) -> None:
        if len(self.quorum.controllers) >= MOST:
            return self.remove()
        node_id, self._next_id = self._next_id, self._next_id + 1
        kind = self.random.choice(self._kinds)
        self._note(f"add {node_id}:{kind}")
        one = self.quorum.plan_observer(node_id, kind)
        one.format(self.quorum.cluster_id, "--no-initial-controllers")
        self._start(one)
        self._make_voter(one)
        return None

    def remove(self) -> None:
        if len(self.quorum.controllers) <= FEWEST:
            return self.add()
        one = self._any()
        if one.node_id == self._anchor:
            return self.kill_leader()
        self._note(f"remove {one.node_id}")
        if self._auto_join or self.random.random() < 0.3:
            one.kill()
        self.quorum.wait_for_leader()
        self._ask_to_remove(one.node_id, self._directory_id(one.node_id))
        one.kill()
        self._copies.pop(one.node_id, None)
        del self.quorum.controllers[one.node_id]
        return None

    def _directory_id(self, node_id: int) -> str:
        """The directory id of that voter, or "" if there is no such voter. OSError without a leader."""
        described = self.quorum.described()
        if described is None:
            raise OSError("no controller leads")
        found = [one.replica_directory_id for one in described.current_voters if one.replica_id == node_id]
        return uuid_text(found[0]) if found else ""

    def _make_voter(self, one: Controller) -> None:
        """Make the controller a voter with its present directory."""
        own = own_directory_id(one)
        if not self._auto_join:
            self._ask_to_add(one)
        wait_until(lambda: self._directory_id(one.node_id) == own, f"{one.node_id} votes with {own}", 90)

    def _ask_to_add(self, one: Controller) -> None:
        self.quorum.wait_until_observer_is_level(one.node_id)
        if self.random.random() < 0.5:
            command = ("--bootstrap", self._servers(), "--config", one.properties_file)
            subprocess.run(kraftd_command("quorum", "add-controller", *command), check=True)
            return
        options = ("--command-config", one.properties_file, "add-controller")
        tools().run("metadata-quorum", *self._servers_of_a_kind(), *options).check()

    def _ask_to_remove(self, node_id: int, directory_id: str) -> None:
        voter = ("--controller-id", node_id, "--controller-directory-id", directory_id)
        if self.random.random() < 0.5:
            command = ("--bootstrap", self._servers(), *voter)
            subprocess.run(kraftd_command("quorum", "remove-controller", *command), check=True)
            return
        tools().run("metadata-quorum", *self._servers_of_a_kind(), "remove-controller", *voter).check()

    def _servers(self) -> str:
        return ",".join(one.address for one in self.quorum.controllers.values() if one.alive)

    def _servers_of_a_kind(self) -> tuple[str, str]:
        """Brokers pass a change on to the active controller."""
        if self.random.random() < 0.5:
            return "--bootstrap-server", self.quorum.bootstrap
        return "--bootstrap-controller", self._servers()

    EVENTS: tuple[Callable[[History], None], ...] = (
        kill_leader,
        kill_leader,
        kill_in_a_loop,
        stop,
        freeze,
        kill_all,
        restart_a_broker,
        restore_copy,
        restore_copy,
        wipe,
    )
    OF_DYNAMIC_QUORUMS: tuple[Callable[[History], None], ...] = (move, add, add, remove)
