"""``kraftd quorum recover``: two of three voters are lost for good, and the third leads alone."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from testkit.process import free_port, wait_until
from tests.cli.cluster import create_topics, register_broker
from tests.cli.run import command, run, run_apart, started, tree, write_config
from tests.cli.test_backup import described, topics

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"
IDS = ("PJ0y2k0hRWuT2vVYJ9yS1Q", "PJ0y2k0hRWuT2vVYJ9yS2Q", "PJ0y2k0hRWuT2vVYJ9yS3Q")
QUICK = {
    "kraftd__shutdown__timeout__ms": "100",
    "replica__high__watermark__checkpoint__interval__ms": "100",
}


def three(folder: Path) -> tuple[dict[int, Path], dict[int, int]]:
    """Format three voters; return their files and their ports."""
    ports = {number: free_port() for number in (1, 2, 3)}
    initial = ",".join(f"{n}@127.0.0.1:{ports[n]}:{directory}" for n, directory in enumerate(IDS, 1))
    servers = ",".join(f"127.0.0.1:{port}" for port in ports.values())
    configs = {}
    for number, port in ports.items():
        (folder / str(number)).mkdir()
        keys = {"node__id": str(number), "controller__quorum__bootstrap__servers": servers, **QUICK}
        configs[number] = write_config(folder / str(number), port, **keys)
        done = run("format", "-c", configs[number], "-t", CLUSTER_ID, "--initial-controllers", initial)
        assert done.code == 0, done.err
    return configs, ports


def see_what_the_survivor_knows(port: int, data: Path) -> None:
    """Without a leader, a survivor shows what it knows is committed, and how old that is."""
    running = ("--bootstrap", f"127.0.0.1:{port}", "--timeout", 3)
    shown = run("show", "/provenance", "--json", *running)
    assert shown.code == 0, shown.err
    offset = json.loads(shown.out)["value"]["offset"]
    assert f"127.0.0.1:{port}: no leader for " in shown.err
    assert f"This is what it knows is committed, up to offset {offset} of 20" in shown.err
    for words in (("topics",), ("history",), ("diff", "--from", 2), ("show", "/features")):
        by_survivor = run(*words, "--json", *running)
        limit = ("--to", offset) if words[0] in ("history", "diff") else ("--as-of", offset)
        assert by_survivor.code == 0
        assert by_survivor.out == run(*words, "--json", "-d", data, *limit).out, words
    beyond = run("topics", "--as-of", offset + 1, *running)
    assert beyond.code == 1
    assert f"is beyond the end: the log has the offsets 0 to {offset}." in beyond.err


def test_the_last_of_three_voters_recovers_all_topics_and_new_voters_join(tmp_path: Path) -> None:
    configs, ports = three(tmp_path)
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(started(config))[0] for config in configs.values()]
        leader = described(ports[1])["LeaderId"]
        survivor, third = (number for number in configs if number != leader)
        processes[third - 1].kill()  # or the majority might be the others, while the leader's disk is slow
        register_broker(ports[leader], CLUSTER_ID)
        create_topics(ports[leader], "orders", "payments")
        refused = run("quorum", "recover", "--config", configs[leader], "--cluster-id-confirm", CLUSTER_ID)
        assert (refused.code, "in use by another process" in refused.err) == (4, True)
        processes[leader - 1].kill()
        see_what_the_survivor_knows(ports[survivor], tmp_path / str(survivor) / "data")
        processes[survivor - 1].kill()
    lost = [number for number in configs if number != leader]
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / str(lost[0]) / "data", copy)
    for number in lost:
        shutil.rmtree(tmp_path / str(number) / "data")

    before = tree(tmp_path / str(leader))
    recover = ("quorum", "recover", "--config", configs[leader])
    wrong = run(*recover, "--cluster-id-confirm", "another")
    assert wrong.code == 1
    assert "Nothing was changed" in wrong.err
    assert tree(tmp_path / str(leader)) == before
    [log] = (tmp_path / str(leader)).rglob("*.log")
    sound = log.read_bytes()
    log.write_bytes(sound[:100] + bytes([sound[100] ^ 1]) + sound[101:])
    damaged = run(*recover, "--cluster-id-confirm", CLUSTER_ID)
    assert damaged.code == 3
    assert f"{log}, byte 0 (offset 0)" in damaged.err
    log.write_bytes(sound)
    assert tree(tmp_path / str(leader)) == before
    partition = copy / "__cluster_metadata-0"
    done = run(*recover, "--other", copy, "--other", partition, "--cluster-id-confirm", CLUSTER_ID)
    assert (done.code, done.err) == (0, "")
    assert f"{partition} ends at offset" in done.out
    assert f"{copy} ends at offset" in done.out
    assert f"Controller {leader} is the only voter" in done.out

    newcomer, port = tmp_path / "new", free_port()
    newcomer.mkdir()
    bootstrap = f"127.0.0.1:{ports[leader]}"
    keys = {"node__id": "9", "controller__quorum__bootstrap__servers": bootstrap, **QUICK}
    config = write_config(newcomer, port, **keys)
    assert run("format", "-c", config, "-t", CLUSTER_ID, "--no-initial-controllers").code == 0
    with started(configs[leader]), started(config):
        quorum = described(ports[leader])
        assert [one["id"] for one in quorum["CurrentVoters"]] == [leader]
        assert quorum["LeaderEpoch"] > 1_000
        create_topics(ports[leader], "new")
        added = run("quorum", "add-controller", "--bootstrap", bootstrap, "--config", config)
        assert added.code == 0, added.err
        assert [one["id"] for one in described(ports[leader])["CurrentVoters"]] == [leader, 9]
        shutil.copytree(copy, tmp_path / str(lost[0]) / "data")
        with started(configs[lost[0]]):  # an old voter comes back on its old directory: it only follows
            while lost[0] not in [one["id"] for one in described(ports[leader])["CurrentObservers"]]:
                time.sleep(0.05)
            again = described(ports[leader])
            assert (again["LeaderId"], again["LeaderEpoch"]) == (leader, quorum["LeaderEpoch"])
            assert [one["id"] for one in again["CurrentVoters"]] == [leader, 9]
    assert topics(newcomer / "data") == {"orders", "payments", "new"}


def test_an_old_voter_with_more_committed_records_joins_once_they_are_discarded(tmp_path: Path) -> None:
    """It ends at each start until then: its high watermark has outlived the kill."""
    configs, ports = three(tmp_path)
    with contextlib.ExitStack() as stack:
        processes = {n: stack.enter_context(started(config))[0] for n, config in configs.items()}
        leader = described(ports[1])["LeaderId"]
        register_broker(ports[leader], CLUSTER_ID)
        survivor = next(number for number in configs if number != leader)
        processes[survivor].kill()
        processes[survivor].wait()
        create_topics(ports[leader], "lost", "gone")
        partition = tmp_path / str(leader) / "data" / "__cluster_metadata-0"
        end = described(ports[leader])["HighWatermark"]
        wait_until(lambda: high_watermark(partition) >= end, "it writes its high watermark")
        for process in processes.values():
            process.kill()
    done = run("quorum", "recover", "--config", configs[survivor], "--cluster-id-confirm", CLUSTER_ID)
    assert done.code == 0
    discard = ("quorum", "discard", "--config", configs[leader], "--cluster-id-confirm")
    early = run(*discard, CLUSTER_ID)
    assert (early.code, "needs no discard" in early.err) == (3, True)
    [log] = partition.glob("*.log")
    with started(configs[survivor]):
        for _ in range(2):
            old = run_apart("start", configs[leader])
            assert old.code == 3
            assert "Traceback" not in old.err
            assert "run kraftd quorum discard on this node" in old.err
        whole, before = log.read_bytes(), tree(tmp_path / str(leader))
        wrong = run(*discard, "another")
        assert (wrong.code, tree(tmp_path / str(leader))) == (1, before)
        done = run(*discard, CLUSTER_ID)
        assert (done.code, done.err) == (0, "")
        assert f"Leader {survivor} of epoch" in done.out and "on, without" not in done.out
        assert "2 TopicRecord" in done.out
        assert "They create 2 topics: lost, gone" in done.out
        [kept] = (partition / "discarded").glob("*.log")
        assert str(kept) in done.out
        assert log.read_bytes() + kept.read_bytes() == whole
        rows = run("dump", kept).out
        assert (rows.count('"TopicRecord"'), rows.count('"damage"')) == (2, 0)
        with started(configs[leader]):
            wait_until(
                lambda: leader in [one["id"] for one in described(ports[survivor])["CurrentObservers"]],
                "it follows the recovered quorum",
            )
    assert topics(tmp_path / str(leader) / "data") == topics(tmp_path / str(survivor) / "data") == set()


def high_watermark(partition: Path) -> int:
    """The high watermark on the disk; -1 before there is one."""
    file = partition / "high-watermark"
    return json.loads(file.read_bytes())["highWatermark"] if file.exists() else -1


def test_the_survivor_of_a_static_quorum_leads_once_it_is_the_only_voter_in_its_file(tmp_path: Path) -> None:
    port, other = free_port(), free_port()
    alone = f"1@127.0.0.1:{port}"
    keys = {"controller__quorum__bootstrap__servers": None, "controller__quorum__voters": alone, **QUICK}
    config = write_config(tmp_path, port, **keys)
    assert run("format", "-c", config, "-t", CLUSTER_ID).code == 0
    with started(config):
        register_broker(port, CLUSTER_ID)
        create_topics(port, "orders")
    write_config(tmp_path, port, **{**keys, "controller__quorum__voters": f"{alone},2@127.0.0.1:{other}"})
    before = tree(tmp_path)
    recover = ("quorum", "recover", "--config", config, "--cluster-id-confirm", CLUSTER_ID)
    refused = run(*recover)
    assert refused.code == 3
    assert f"Set controller.quorum.voters={alone} in this file" in refused.err
    assert tree(tmp_path) == before
    write_config(tmp_path, port, **keys)
    done = run(*recover)
    assert (done.code, done.err) == (0, "")
    assert f"Set controller.quorum.voters={alone} in the file of every broker" in done.out
    assert "Former controllers have the old line: never start one with it" in done.out
    with started(config):
        quorum = described(port)
        assert (quorum["LeaderId"], quorum["LeaderEpoch"] > 1_000) == (1, True)
        create_topics(port, "new")
    assert topics(tmp_path / "data") == {"orders", "new"}


def three_static(folder: Path) -> tuple[dict[int, Path], dict[int, int]]:
    """Format three voters of a static quorum; return their files and their ports."""
    ports = {number: free_port() for number in (1, 2, 3)}
    voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in ports.items())
    configs = {}
    for number, port in ports.items():
        (folder / str(number)).mkdir()
        configs[number] = write_static(folder, number, port, voters)
        assert run("format", "-c", configs[number], "-t", CLUSTER_ID).code == 0
    return configs, ports


def led(
    stack: contextlib.ExitStack, configs: dict[int, Path], ports: dict[int, int]
) -> tuple[dict[int, subprocess.Popen[str]], int, int, int]:
    """Start three voters, and register a broker; returns the processes, the leader, and the two others."""
    processes = {number: stack.enter_context(started(config))[0] for number, config in configs.items()}
    leader = described(ports[1])["LeaderId"]
    first, second = (number for number in configs if number != leader)
    register_broker(ports[leader], CLUSTER_ID)
    return processes, leader, first, second


def write_static(folder: Path, number: int, port: int, voters: str) -> Path:
    keys = {"controller__quorum__bootstrap__servers": None, "controller__quorum__voters": voters, **QUICK}
    return write_config(folder / str(number), port, node__id=str(number), **keys)


def test_a_static_recover_refuses_while_a_majority_leads_and_works_once_it_is_lost(tmp_path: Path) -> None:
    """A voter is stopped and its file names it alone; the other two lead on, and are lost only later."""
    configs, ports = three_static(tmp_path)
    with contextlib.ExitStack() as stack:
        processes, leader, stopped, other = led(stack, configs, ports)
        create_topics(ports[leader], "before")
        wait_until(lambda: described(ports[leader])["MaxFollowerLag"] == 0, "the followers are level")
        processes[stopped].terminate()
        processes[stopped].wait(30)
        create_topics(ports[leader], *(f"after-{number}" for number in range(20)))
        alone = f"{stopped}@127.0.0.1:{ports[stopped]}"
        write_static(tmp_path, stopped, ports[stopped], alone)
        before = tree(tmp_path / str(stopped))
        alone_beside_them = run("start", configs[stopped])
        assert alone_beside_them.code == 3
        assert "are a majority, and may lead. Put them back; or" in alone_beside_them.err
        examined = run("doctor", "--config", configs[stopped]).out
        assert "a start is refused: controller.quorum.voters has the voters" in examined
        assert tree(tmp_path / str(stopped)) == before
        recover = ("quorum", "recover", "--config", configs[stopped], "--cluster-id-confirm", CLUSTER_ID)
        refused = run(*recover)
        assert refused.code == 1, refused.out
        for number in (leader, other):
            assert f"Controller {number} at 127.0.0.1:{ports[number]}" in refused.err
        assert f"controller {leader} leads in epoch" in refused.err
        assert "of them are not in this log" in refused.err
        assert tree(tmp_path / str(stopped)) == before
        for number in (leader, other):
            processes[number].kill()
            processes[number].wait(30)
    done = run(*recover)
    assert (done.code, done.err) == (0, ""), done.out
    assert done.out.count("does not answer: Connection refused") == 2, done.out
    with started(configs[stopped]), contextlib.ExitStack() as stack:
        assert described(ports[stopped])["LeaderId"] == stopped
        create_topics(ports[stopped], "new")
        for number in (leader, other):  # lost voters return with their old files: they never vote again
            process = subprocess.Popen(command("start", configs[number]), stdout=-3, stderr=-3)
            stack.callback(end, process)
            wait_until(
                lambda n=number, p=process: p.poll() is not None or follows(ports[stopped], n), "it met it"
            )
        again = described(ports[stopped])
        assert (again["LeaderId"], again["LeaderEpoch"] > 1_000) == (stopped, True)
        assert [one["id"] for one in again["CurrentVoters"]] == [stopped]
    assert topics(tmp_path / str(stopped) / "data") == {"before", "new"}


def follows(port: int, number: int) -> bool:
    return number in [one["id"] for one in described(port)["CurrentObservers"]]


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(30)


def test_recover_refuses_an_unformatted_directory(tmp_path: Path) -> None:
    done = run("quorum", "recover", "--config", write_config(tmp_path), "--cluster-id-confirm", CLUSTER_ID)
    assert done.code == 3
    assert "meta.properties" in done.err


def test_recover_refuses_while_the_others_are_a_majority(tmp_path: Path) -> None:
    configs, ports = three(tmp_path)
    with contextlib.ExitStack() as stack:
        processes, leader, stopped, other = led(stack, configs, ports)
        processes[stopped].terminate()
        processes[stopped].wait(30)
        before = tree(tmp_path / str(stopped))
        recover = ("quorum", "recover", "--config", configs[stopped], "--cluster-id-confirm")
        refused = run(*recover, CLUSTER_ID)
        assert refused.code == 1
        for number in (leader, other):
            assert f"{number} at 127.0.0.1:{ports[number]}" in refused.err
        new = write_config(
            tmp_path, free_port(), controller__quorum__bootstrap__servers=f"127.0.0.1:{ports[other]}"
        )
        second = run("format", "-c", new, "-t", CLUSTER_ID, "--standalone")
        assert (second.code, (tmp_path / "data").exists()) == (1, False)
        assert f"a quorum of cluster {CLUSTER_ID} has a leader" in second.err
        processes[other].kill()
        processes[other].wait(30)
        warned = run(*recover, "another")
        assert f"Controller {leader} at 127.0.0.1:{ports[leader]} answers" in warned.out
        assert "A majority of the voters is not lost" in warned.err  # with this one they are two of three
        secured = tmp_path / "secured.properties"
        jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required username=a password=b;"
        secured.write_text(
            f"{configs[stopped].read_text()}listener.security.protocol.map=CONTROLLER:SASL_PLAINTEXT\n"
            "sasl.mechanism.controller.protocol=PLAIN\nsasl.enabled.mechanisms=PLAIN\n"
            f"listener.name.controller.plain.sasl.jaas.config={jaas}\n"
        )
        # A listener without security is asked without, as that of a broker beside secured controllers.
        asked = run_apart("quorum", "recover", "--config", secured, "--cluster-id-confirm", CLUSTER_ID)
        assert f"Controller {leader} at 127.0.0.1:{ports[leader]} answers" in asked.out
        assert tree(tmp_path / str(stopped)) == before


def test_the_survivor_of_a_lost_majority_reports_the_missing_voters(tmp_path: Path) -> None:
    """The survivor requests pre-votes and knows the leader of the epoch, although that leader is lost."""
    configs, ports = three(tmp_path)
    for config in configs.values():
        config.write_text(config.read_text() + f"kraftd.metrics.listener=127.0.0.1:{free_port()}\n")
    with contextlib.ExitStack() as stack:
        processes = {n: stack.enter_context(started(config))[0] for n, config in configs.items()}
        leader = described(ports[1])["LeaderId"]
        survivor = next(number for number in configs if number != leader)
        listener = configs[survivor].read_text().split("kraftd.metrics.listener=")[1].strip()
        wait_until(lambda: ready(listener)["ready"], "it serves")
        for number, process in processes.items():
            if number != survivor:
                process.kill()
        wait_until(lambda: len(ready(listener)["troubles"]) == 2, "it reports both")
        wait_until(lambda: ready(listener)["state"] == "no leader", "its fetches timed out")
        assert ready(listener)["ready"] is False
        options = ("--bootstrap", f"127.0.0.1:{ports[survivor]}", "--timeout", "0.5")
        # What it knows first of a killed node may be that the connection ended.
        reported = "nothing listens there; start the node there"
        wait_until(
            lambda: run("quorum", "describe", *options).err.count(reported) == 2, "it has tried both again"
        )
        wait_until(lambda: run("quorum", "describe", *options).code == 1, "it answers in time")


def ready(listener: str) -> dict[str, Any]:
    """Return the content of /readyz, whatever its status."""
    try:
        with urllib.request.urlopen(f"http://{listener}/readyz", timeout=5) as answer:
            return json.load(answer)  # type: ignore[no-any-return]
    except urllib.error.HTTPError as refused:
        return json.load(refused)  # type: ignore[no-any-return]
