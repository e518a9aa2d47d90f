"""JAAS strings of Kafka's files: ``<login module> required name="value" …;``.

The tokens are those of Java's StreamTokenizer as Kafka's JaasConfig sets it up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

_MODULES = "org.apache.kafka.common.security."
PLAIN_MODULE = f"{_MODULES}plain.PlainLoginModule"
SCRAM_MODULE = f"{_MODULES}scram.ScramLoginModule"
OAUTHBEARER_MODULE = f"{_MODULES}oauthbearer.OAuthBearerLoginModule"
_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(
    r"""(?P<blank>[\x00-\x20]+|/\*.*?\*/|/[^\n\r]*)
      |(?P<quoted>"(?:\\.|[^"\\\n\r])*"|'(?:\\.|[^'\\\n\r])*')
      |(?P<word>(?:[A-Za-z_$]|[^\x00-\x9f])(?:[A-Za-z0-9_$.\-]|[^\x00-\x9f])*)
      |(?P<number>[0-9.\-](?:[0-9A-Za-z_$.\-]|[^\x00-\x9f])*)
      |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasEntry(msgspec.Struct, frozen=True):
    """One login module with its options; some of them are secrets."""

    module: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"<JaasEntry {self.module} with {', '.join(sorted(self.options)) or 'no options'}>"


def parse_jaas(text: str) -> JaasEntry:
    """The one login module of a text. Raises ValueError, which repeats no value of an option."""
    tokens = list(_tokens(text))
    entries = []
    while tokens:
        end = next((at for at, (kind, value) in enumerate(tokens) if (kind, value) == ("sign", ";")), None)
        if end is None:
            raise ValueError("the JAAS entry must end with a semicolon")
        entries.append(_entry(tokens[:end]))
        del tokens[: end + 1]
    if len(entries) != 1:
        raise ValueError(f"it names {len(entries)} login modules; exactly one is expected")
    return entries[0]


def _entry(tokens: list[tuple[str, str]]) -> JaasEntry:
    if not tokens or tokens[0][0] not in ("word", "quoted"):
        raise ValueError("it names no login module")
    module = tokens[0][1]
    if len(tokens) < 2 or tokens[1][1].lower() not in _FLAGS:
        raise ValueError(f"after {module} one of {', '.join(_FLAGS)} is expected")
    options: dict[str, str] = {}
    at = 2
    while at < len(tokens):
        key = tokens[at][1]
        value = tokens[at + 2] if at + 2 < len(tokens) else ("", "")
        if tokens[at][0] == "sign" or tokens[at + 1 : at + 2] != [("sign", "=")]:
            raise ValueError(f"option {len(options) + 1} of {module} must be name=value")
        if value[0] not in ("word", "quoted"):
            raise ValueError(f"the value of option {key} must be put in quotes")
        options[key] = value[1]
        at += 3
    return JaasEntry(module, options)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        kind, value = match.lastgroup or "", match[0]
        if kind == "blank":
            continue
        if kind == "quoted":
            value = _ESCAPE.sub(_unescape, value[1:-1])
        elif kind == "sign" and value in "\"'":
            raise ValueError("a quoted value does not end")
        yield kind, value


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)
