"""Consumers of the metadata log that read on until they are stopped, one for each client library.

Each begins at the log's start and knows only the given addresses. `seen()` are offsets and values in order.
They may declare themselves by a client id.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import threading
from pathlib import Path

from aiokafka import AIOKafkaConsumer
from aiokafka.structs import TopicPartition as AiokafkaPartition
from kafka import KafkaConsumer
from kafka.structs import TopicPartition as KafkaPythonPartition

from kraftd.types import METADATA_TOPIC
from testkit.java import TOOLS, java_command
from testkit.process import Process, wait_until
from tests.kafka.clients.readers import LogReader

GO_PROGRAM = Path(__file__).parent / "franz_go"
DECLARED = "__cluster_metadata-reader"  # the client id of a reader that must not learn of a broker
ESCAPING = "value.deserializer=org.apache.kafka.common.serialization.BytesDeserializer"
Seen = list[tuple[int, bytes]]


class JavaReader(Process):
    """Apache Kafka's console consumer."""

    def __init__(self, home: Path, bootstrap: str, client_id: str = "reader") -> None:
        words = ["--bootstrap-server", bootstrap, "--topic", METADATA_TOPIC, "--partition", "0"]
        words += ["--offset", "earliest", "--formatter-property", "print.offset=true"]
        words += ["--formatter-property", ESCAPING, "--command-property", f"client.id={client_id}"]
        super().__init__("java", home / "java", lambda: java_command(TOOLS["console-consumer"], *words))

    def seen(self) -> Seen:
        """Offset and value of each record so far; bytes that are not printable come as \\xHH."""
        lines = re.findall(r"^Offset:(\d+)\t(.*)\n", self.log.read_text(), re.MULTILINE)
        return [
            (int(offset), value.encode().decode("unicode_escape").encode("latin-1"))
            for offset, value in lines
        ]

    def wait_for(self, offset: int) -> None:
        self.wait(lambda: self.seen()[-1:] >= [(offset, b"")], f"has read {offset}")


class GoReader(Process):
    """franz-go, in the program that `build` has compiled."""

    def __init__(self, home: Path, bootstrap: str, client_id: str = "reader") -> None:
        super().__init__("franz-go", home / "go", lambda: [str(home / "reader"), "follow"])
        self.environment |= {"KGO_SEEDS": bootstrap, "KGO_CLIENT_ID": client_id}

    def seen(self) -> Seen:
        lines = re.findall(r"^(\d+) ([0-9a-f]*)\n", self.log.read_text(), re.MULTILINE)
        return [(int(offset), bytes.fromhex(value)) for offset, value in lines]

    @staticmethod
    def build(home: Path) -> None:
        """Compile the program."""
        go = shutil.which("go") or "/usr/local/go/bin/go"
        builder = Process(
            "go-build",
            home / "build",
            lambda: [go, "build", "-C", str(GO_PROGRAM), "-o", str(home / "reader"), "."],
        )
        builder.environment = dict(os.environ)
        builder.start()
        wait_until(lambda: not builder.alive, "the program is compiled", 300)
        assert builder.exit_code == 0, builder.log.read_text()


class _Thread(threading.Thread):
    """A consumer in a thread; its failure is shown by `seen()`."""

    def __init__(self, bootstrap: str, client_id: str = "reader") -> None:
        super().__init__(name=f"{type(self).__name__} {client_id}", daemon=True)
        self._servers, self._client_id = bootstrap, client_id
        self._seen = list[tuple[int, bytes]]()
        self._failure: Exception | None = None
        self._stopping = threading.Event()

    def __repr__(self) -> str:
        return f"<{self.name} at {self._seen[-1][0] if self._seen else None}>"

    def seen(self) -> Seen:
        if self._failure is not None:
            raise self._failure
        return list(self._seen)

    def run(self) -> None:
        try:
            self._read()
        except Exception as error:
            self._failure = error

    def _read(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        self._stopping.set()
        self.join(30)


class KafkaPythonReader(_Thread):
    """kafka-python."""

    def _read(self) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self._servers.split(","),
            client_id=self._client_id,
            enable_auto_commit=False,
            auto_offset_reset="none",
        )
        partition = KafkaPythonPartition(METADATA_TOPIC, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        while not self._stopping.is_set():
            for records in consumer.poll(timeout_ms=200).values():
                self._seen += [(one.offset, bytes(one.value or b"")) for one in records]
        consumer.close()


class AiokafkaReader(_Thread):
    """aiokafka."""

    def _read(self) -> None:
        asyncio.run(self._consume())

    async def _consume(self) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._servers,
            client_id=self._client_id,
            enable_auto_commit=False,
            auto_offset_reset="none",
        )
        await consumer.start()
        partition = AiokafkaPartition(METADATA_TOPIC, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    self._seen += [(one.offset, bytes(one.value or b"")) for one in records]
        await consumer.stop()


class LibrdkafkaReader(_Thread):
    """librdkafka."""

    def _read(self) -> None:
        reader = LogReader("librdkafka", self._servers, self._client_id)
        self._seen = reader.seen
        reader.start()
        self._stopping.wait()
        reader.stop()
        assert not reader.failures and not reader.skipped, reader.failures or reader.skipped


Reader = JavaReader | GoReader | KafkaPythonReader | AiokafkaReader | LibrdkafkaReader


def wait_for_all(readers: list[Reader], offset: int, timeout_s: float = 60) -> None:
    """Wait until each of them has read the record at that offset, or a later one."""
    for reader in readers:
        wait_until(
            lambda reader=reader: reader.seen()[-1:] >= [(offset, b"")],  # type: ignore[misc]
            f"{reader!r} has read {offset}",
            timeout_s,
        )
