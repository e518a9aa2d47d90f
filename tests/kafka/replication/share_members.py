"""Members of a share group in one process of Java, and what they read and accepted."""

from __future__ import annotations

from pathlib import Path

from testkit.java import QUICK_START, classpath, compile_java, find_java, find_javac
from testkit.process import Process
from tests.kafka.replication.mixed import PARTITIONS

_JAVA = Path(__file__).parents[1] / "java" / "ShareMembers.java"


class ShareMembers:
    """See the module. `count` members read a topic of PARTITIONS."""

    def __init__(self, home: Path, bootstrap: str, group: str, topic: str, count: int, seed: int) -> None:
        javac = find_javac()
        assert javac is not None, "no javac"
        path = f"{compile_java(javac, _JAVA)}:{classpath()}"
        words = [bootstrap, group, topic, str(count), str(seed)]
        command = [str(find_java()), *QUICK_START, "-cp", path, "ShareMembers", *words]
        folder = home / group
        folder.mkdir()
        self.group = group
        self._process = Process(group, folder, lambda: command)
        self._process.start()

    def __repr__(self) -> str:
        return f"<ShareMembers of {self.group} {self._process!r}>"

    def accepted(self) -> list[set[bytes]]:
        """By partition, the values that members have accepted, with an answer or without."""
        return [set(one) for one in self._values("accepted", "doubted")]

    def read(self) -> list[list[bytes]]:
        """By partition, each value as often as a member got it."""
        return self._values("read")

    def read_again(self) -> int:
        """How many values a member got after a broker had answered that they are accepted."""
        done, again = set[tuple[str, str]](), 0
        for word, *place in self._lines():
            if word == "accepted":
                done.add((place[0], place[1]))
            elif word == "read":
                again += (place[0], place[1]) in done
        return again

    def troubles(self) -> list[str]:
        """What went wrong, line by line."""
        lines = self._process.log_text().splitlines()
        return [line for line in lines if line.startswith(("begins again", "not accepted"))]

    def stop(self) -> None:
        self._process.stop(90)
        assert "all have ended" in self._process.log_text(), self._process.log_tail()

    def kill(self) -> None:
        self._process.kill()

    def _lines(self) -> list[list[str]]:
        rows = [line.split() for line in self._process.log_text().splitlines()]
        return [row for row in rows if len(row) == 3 and row[0] in ("read", "accepted", "doubted")]

    def _values(self, *words: str) -> list[list[bytes]]:
        found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        for kind, partition, value in self._lines():
            if kind in words:
                found[int(partition)].append(value.encode())
        return found
