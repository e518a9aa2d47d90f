"""Runs the commands of docs/operations as printed there: losing nodes, backup and restore."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from testkit.process import free_port
from tests.cli.cluster import create_topics, register_broker
from tests.cli.run import run, started, write_config
from tests.cli.test_backup import described, topics
from tests.cli.test_recover import CLUSTER_ID, QUICK, three

PAGES = Path(__file__).resolve().parents[2] / "docs" / "operations"


def commands(page: str, heading: str) -> list[str]:
    """Return the kraftd commands under a heading of a page, without comments and line ends."""
    section = re.split(rf"^#+ {re.escape(heading)}$", (PAGES / page).read_text(), flags=re.M)[1]
    section = re.split(r"^#", section, flags=re.M)[0]
    lines = re.sub(r"\\\n\s+", "", section).splitlines()
    return [line.partition(" #")[0].strip() for line in lines if line.startswith("    kraftd ")]


def do(command: str, values: Mapping[str, object]) -> str:
    """Run a command of a page in this process, with real values in place of those on the page."""
    words = [values.get(word, word) for word in shlex.split(command)[1:]]
    done = run(*words)
    assert (done.code, done.err) == (0, ""), f"{words}: {done}"
    return done.out


def voters(port: int) -> dict[int, dict[str, Any]]:
    return {one["id"]: one for one in described(port)["CurrentVoters"]}


@contextlib.contextmanager
def controllers(*configs: Path) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for config in configs:
            stack.enter_context(started(config))
        yield


def test_the_commands_of_the_pages_on_lost_nodes_and_backups_work(tmp_path: Path) -> None:
    configs, ports = three(tmp_path)
    servers = ",".join(f"127.0.0.1:{port}" for port in ports.values())
    backup, moment = tmp_path / "backup", ""
    take, *restore = commands("backup.md", "Backup") + commands("backup.md", "Restore")
    values: dict[str, object] = {"c1:9093,c2:9093,c3:9093": servers, "/backups/2026-11-22": backup}
    with controllers(*configs.values()):
        leader = described(ports[1])["LeaderId"]
        register_broker(ports[leader], CLUSTER_ID)
        create_topics(ports[leader], "orders")
        do(take, values)
        moment = json.loads((backup / "backup.json").read_text())["end_offset"] - 1
    replaced = replace_one(configs, ports)
    assert replaced == {1, 2, 3}
    assert recover_one(configs, ports) == {1}
    for number, command in enumerate(restore[:2]):
        folder, port = tmp_path / f"restored-{number}", free_port()
        folder.mkdir()
        config = write_config(folder, port, **QUICK)
        new = {"2026-11-22 06:51": moment, "$(kraftd random-uuid)": "AnotherClusterWithAnId"}
        do(command, {**values, **new, "controller.properties": config})
        assert restore[2] == "kraftd start controller.properties"
        with controllers(config):
            assert set(voters(port)) == {1}
        assert topics(folder / "data") == {"orders"}


def replace_one(configs: Mapping[int, Path], ports: Mapping[int, int]) -> set[int]:
    """Lose controller 3 and replace it as the page says; return the voters afterwards."""
    describe, remove, form, start, add = commands("losing-nodes.md", "One controller of three")
    shutil.rmtree(configs[3].parent / "data")
    values: dict[str, object] = {"c1:9093": f"127.0.0.1:{ports[1]}", "controller.properties": configs[3]}
    with controllers(configs[1], configs[2]):
        lost = voters(ports[1])[3]["directoryId"]
        assert lost in do(describe, values)
        do(remove, {**values, "DIRECTORY_ID": lost})
        do(form, {**values, "ID": CLUSTER_ID})
        assert start == "kraftd start controller.properties"
        with controllers(configs[3]):
            do(add, values)
            found = voters(ports[1])
    assert found[3]["directoryId"] != lost
    return set(found)


def recover_one(configs: Mapping[int, Path], ports: Mapping[int, int]) -> set[int]:
    """Lose controllers 2 and 3 for good and recover; return the voters of the survivor."""
    copies = {}
    for name, number in (("/mnt/copy-of-c2", 2), ("/mnt/copy-of-a-broker", 3)):
        copies[name] = configs[number].parent / "copy"
        shutil.move(configs[number].parent / "data", copies[name])
    [command] = commands("losing-nodes.md", "A majority")
    values = {**copies, "controller.properties": configs[1]}
    output = do(f"{command} --cluster-id-confirm {CLUSTER_ID}", values)
    assert all(f"{copy} ends at offset" in output for copy in copies.values())
    with controllers(configs[1]):
        return set(voters(ports[1]))


def test_a_quorum_whose_addresses_all_changed_elects_and_records_them__kip1347(tmp_path: Path) -> None:
    """As in moving-addresses.md, the bootstrap servers list the new addresses, in another order."""
    configs, ports = three(tmp_path)
    with controllers(*configs.values()):
        assert set(voters(ports[1])) == {1, 2, 3}
        register_broker(ports[described(ports[1])["LeaderId"]], CLUSTER_ID)
    new = {number: free_port() for number in configs}
    for number, port in new.items():
        others = ",".join(f"127.0.0.1:{new[other]}" for other in sorted(new, reverse=True) if other != number)
        keys = {"node__id": str(number), "controller__quorum__bootstrap__servers": others, **QUICK}
        write_config(configs[number].parent, port, **keys)
    expected = {number: [f"CONTROLLER://127.0.0.1:{port}"] for number, port in new.items()}
    with controllers(*configs.values()):
        while {number: one["endpoints"] for number, one in voters(new[1]).items()} != expected:
            time.sleep(0.1)
