"""Kafka's config classes in a JVM of their own, with one question per line; and texts for the questions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from kraftd.configdef.definition import ConfigDef, ConfigKey
from tests.controller.oracle import command

NODE_ID = 7
BASE = {
    "process.roles": "controller",
    "node.id": str(NODE_ID),
    "listeners": "CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
}


class ConfigOracle:
    """The JVM's process; `close` ends it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            command("ConfigOracle"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )

    def ask(self, question: str, **more: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"ask": question, **more}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


NUMBERS = st.sampled_from(
    [
        "0",
        "1",
        "-1",
        "-2",
        "-3",
        "2",
        "5",
        "9",
        "10",
        "17",
        "18",
        "22",
        "23",
        "99",
        "100",
        "1000",
        "1023",
        "1024",
        "1048576",
        "86400000",
        "604800000",
        "2147483647",
        "2147483648",
        "-131072",
        "-131073",
        "9223372036854775807",
        "9223372036854775808",
        "+5",
        "007",
        "1_000",
        "1.5",
        "0x10",
        "٣",
        "３",
    ]
) | st.integers(-(2**64), 2**64).map(str)
SPACED = st.sampled_from(["{}", " {} ", "\t{}\n", "{}\u00a0", "\x00{}"])
BOOLEANS = st.sampled_from(["true", "false", "TRUE", "False", "falſe", "yes", "1", "", "truе"])
DOUBLES = st.sampled_from(
    [
        "0",
        "1",
        "0.5",
        "1.0",
        "-0.1",
        "1.1",
        ".5",
        "5.",
        "1e-3",
        "1E400",
        "NaN",
        "-NaN",
        "Infinity",
        "0.5f",
        "0.5d",
        "1L",
        "0x1p-1",
        "0x1.8p0",
        "inf",
        "nan",
        "1_0",
    ]
)
LISTS = st.lists(
    st.sampled_from(
        ["compact", "delete", "", "Delete", "*", "0:1", "1:2 ", "a:b", "100", "x=y", "client_id=.*"]
    ),
    max_size=4,
).map(", ".join) | st.sampled_from(
    [",", ",,", "compact,,", "*", "client_id=[", "client_id=a=b", "client_id="]
)
STRINGS = st.sampled_from(
    [
        "CreateTime",
        "LogAppendTime",
        "createtime",
        "producer",
        "gzip",
        "snappy",
        "lz4",
        "zstd",
        "uncompressed",
        "none",
        "earliest",
        "latest",
        "by_duration:PT1H",
        "by_duration:P",
        "by_duration:PT",
        "by_duration:-PT1S",
        "by_duration:P1DT2H3M4.5S",
        "by_duration:p1d",
        "by_duration:PT-1H",
        "by_duration:P1W",
        "by_duration",
        "by_duration:",
        "read_committed",
        "READ_COMMITTED",
        "read_uncommitted",
    ]
)
ANYTHING = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)


def texts_for(key: ConfigKey) -> st.SearchStrategy[str]:
    """Texts at the limits of what a key accepts, and arbitrary texts."""
    by_type = {"boolean": BOOLEANS, "double": DOUBLES, "list": LISTS, "string": STRINGS, "class": STRINGS}
    near = by_type.get(key.type, NUMBERS)
    return near | st.builds(str.format, SPACED, near.filter(lambda text: "{" not in text)) | ANYTHING


def configs_of(definition: ConfigDef, unknown: str = "no.such.key") -> st.SearchStrategy[dict[str, str]]:
    """Up to four configs of a definition, sometimes one of another definition."""
    names = st.sampled_from([*definition, unknown])
    pairs = names.flatmap(
        lambda name: st.tuples(st.just(name), texts_for(definition[name]) if name in definition else ANYTHING)
    )
    return st.lists(pairs, max_size=4).map(dict)


def without_nul(texts: Mapping[str, str]) -> bool:
    return not any("\ud800" <= character <= "\udfff" for text in texts.values() for character in text)
