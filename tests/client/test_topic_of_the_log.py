"""The metadata log of a kraftd daemon, read from its controller listener and as a client listener's topic."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftd.cli.sources.quorum import QuorumSource, TopicSource, find_quorum
from kraftd.client.cluster import Cluster
from kraftd.client.failures import NoAnswer, Refused, Unreachable
from kraftd.client.partition_reader import PartitionReader
from kraftd.client.quorum_log import QuorumLog
from kraftd.types import METADATA_TOPIC
from testkit.process import free_port
from tests.cli.run import run, started, write_config

CLUSTER_ID = "Nx_7lyWBRrSmxW_wwvmA5Q"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """A running controller; the ports of its controller listener and its client listener."""
    folder = tmp_path_factory.mktemp("daemon")
    port, client_port = free_port(), free_port()
    config = write_config(
        folder,
        port,
        listeners=f"CONTROLLER://127.0.0.1:{port},CLIENTS://127.0.0.1:{client_port}",
        listener__security__protocol__map="CONTROLLER:PLAINTEXT,CLIENTS:PLAINTEXT",
        kraftd__client__listener__names="CLIENTS",
    )
    assert run("format", "-c", config, "-t", CLUSTER_ID, "--standalone").code == 0
    with started(config):
        yield port, client_port


def test_a_client_listener_names_the_controllers(daemon: tuple[int, int]) -> None:
    port, client_port = daemon

    async def find(bootstrap: int) -> str:
        source = await find_quorum(f"127.0.0.1:{bootstrap}", 10)
        await source.close()
        return type(source).__name__

    assert asyncio.run(find(port)) == asyncio.run(find(client_port)) == QuorumSource.__name__
    shown = [run("show", "/features", "--json", "--bootstrap", f"127.0.0.1:{one}") for one in daemon]
    assert shown[0].code == 0 and shown[0].out == shown[1].out


def test_the_metadata_topic_has_the_batches_of_the_quorums_log(daemon: tuple[int, int]) -> None:
    port, client_port = daemon

    async def read() -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        topic = TopicSource("topic", [("127.0.0.1", client_port)], 10)
        log = QuorumLog([("127.0.0.1", port)], 10)
        try:
            assert await topic.is_served()
            beginning = await topic.begin_earliest()
            of_quorum = [(one.header.base_offset, one.header.crc) async for one in log.batches(0, 0)]
            of_topic = [
                (one.header.base_offset, one.header.crc) async for one in topic.batches(beginning.next_offset)
            ]
        finally:
            await topic.close()
            await log.close()
        return of_topic, of_quorum

    of_topic, of_quorum = asyncio.run(read())
    assert len(of_quorum) > 2 and of_topic[: len(of_quorum)] == of_quorum


def test_a_reader_of_the_topic_fetches_in_a_session(daemon: tuple[int, int]) -> None:
    async def read() -> PartitionReader:
        async with Cluster([("127.0.0.1", daemon[1])], 10) as cluster:
            reader = PartitionReader(cluster, METADATA_TOPIC, 0)
            for _ in range(2):
                assert all([batch.header.size_bytes async for batch in reader.batches()])
            return reader

    reader = asyncio.run(read())
    assert reader.session.id and reader.session.epoch > 1


def test_an_unknown_topic_is_refused(daemon: tuple[int, int]) -> None:
    async def read() -> None:
        source = TopicSource("topic", [("127.0.0.1", daemon[1])], 2)
        try:
            await anext(aiter(PartitionReader(source._cluster, "nothing", 0).batches()))
        finally:
            await source.close()

    with pytest.raises(Refused, match="nothing: UNKNOWN_TOPIC_OR_PARTITION"):
        asyncio.run(read())


def test_a_silent_server_or_one_of_another_protocol_is_reported() -> None:
    async def ask(answer: bytes | None) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            if answer is not None:
                writer.write(answer)
                await writer.drain()
                await reader.read()
            else:
                await asyncio.sleep(60)

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        log = QuorumLog([server.sockets[0].getsockname()[:2]], 0.3)
        try:
            await log.bounds()
        finally:
            await log.close()
            server.close()

    with pytest.raises(NoAnswer, match="no answer in time"):
        asyncio.run(ask(None))
    for answer in (
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\x00\x00\x02ab",
        b"\x00\x00\x00\x08" + bytes(8),
    ):
        with pytest.raises(Unreachable):
            asyncio.run(ask(answer))


def test_a_time_before_the_log_means_its_beginning_and_no_topics_are_listed(daemon: tuple[int, int]) -> None:
    bootstrap = ("--bootstrap", f"127.0.0.1:{daemon[1]}")
    assert "differences between the beginning and offset" in run("diff", "--from", "1d", *bootstrap).err
    assert run("topics", *bootstrap) == (0, "", "There are no topics.\n")


def test_tls_at_a_plaintext_listener_is_reported(daemon: tuple[int, int], tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\n")
    command = ("topics", "--bootstrap", f"127.0.0.1:{daemon[1]}", "--command-config")
    refused = run(*command, file)
    assert refused.code == 5 and "in the TLS handshake; is its listener a TLS one?" in refused.err
    assert "there is no such file; give the path of a .properties file" in run(*command, tmp_path / "x").err


def test_a_clients_file_affects_only_the_command_that_names_it(
    daemon: tuple[int, int], tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\n")
    command = ("topics", "--bootstrap", f"127.0.0.1:{daemon[1]}")
    assert run(*command, "--command-config", file).code == 5
    assert run(*command).code == 0
