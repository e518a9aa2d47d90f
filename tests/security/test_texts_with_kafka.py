"""JAAS strings, mapping rules and distinguished names, compared with Kafka (java/SecurityTextOracle.java)."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from kraftd.security.distinguished_names import rfc2253
from kraftd.security.principal_mapping import NoMatchingRule, PrincipalMapper
from kraftd.security.sasl.jaas import parse_jaas
from testkit.certificates import Authority
from testkit.process import free_port, wait_until
from testkit.secured_client import Unreachable
from tests.runtime.daemon_process import DaemonProcess
from tests.security.der_names import random_name
from tests.security.oracle import ask_java
from tests.security.secured_daemon import connect, tls_keys, tls_of

pytestmark = pytest.mark.kafka

ORACLE = "SecurityTextOracle"
JAAS = (
    'org.apache.kafka.security.PlainLoginModule required username="a" password="p\\"q;=" user_b="";',
    "a.b.C REQUIRED x=y z='it is' ;",
    "a.B optional x=y // a comment\n z=w;",
    "a.B sufficient /* more */ x-y_z$1=v.w2;",
    "a.B required x=12;",
    'a.B required x="\\101\\t\\x\\n";',
    "a.B required x=y",
    "a.B required x;",
    "a.B required =x;",
    "a.B wanted x=y;",
    "a.B required; c.D required;",
    ";",
    "",
    "a.B",
    "1.2 required;",
    "a.B required x=y x=z é=ü;",
    "a.B required serviceName=kafka useTicketCache=true;",
    "a.B required x=\"a'b;=\" y='a\"b';",
    'a.B required x="\\\\" y="\\"" z="\\u0041\\377\\400\\8";',
    'a.B required x="a"y="b";',
    'a.B required x="a", y="b";',
    'a.B required x="a\nb";',
    'a.B required x="a;',
    'a.B required x="1" /* ; */ ;',
    'a.B required x="1"; // behind',
    "a.B required # x=y\n z=w;",
    "a.B required x=-1;",
    "a.B required x=y-1.z_$;",
    "a.B required 'x y'=z;",
    'a.B required "x"="y" x = "z" ;',
    'a.B required x="";;',
    'a.B required x="p/q//r/*s*/";',
    "a.B required x=p/q;",
    "\ufeffa.B required x=y;",
    "a.B required x=\u20ac y=a\u00a0b;",
)
RULES = (
    "DEFAULT",
    "RULE:^CN=([^,]+),OU=Lower,.*$/$1/L,RULE:^CN=([^,]+),.*$/$1/,DEFAULT",
    "RULE:^CN=(.*?),OU=(.*?)$/$2-$1/U",
    "RULE:CN=(\\w+).*/$12\\$1/ , DEFAULT",
    "RULE:.*CN=([^,]+).*/$2$1$0/",
    "RULE:^cn=.*$//,DEFAULT",
    "RULE:C.*/\\/x/",
    "",
    " , DEFAULT",
    "RULE:a/b/X",
    "RULE:C/b/X,DEFAULT",
    "RULE:^CN=(\\w+)$/$1/,DEFAULT",
    "RULE:(?i)^cn=é$/small/,DEFAULT",
    "RULE:C/$1/",
    "RULE:(C)/$1$/",
    "RULE:(C)/${name}/",
    "RULE:(C)/\\$1$0/U",
    "RULE:^CN=([^,]*)(,.*)?$/$1/U",
    "RULE:C*/x/",
    "WRONG",
    "RULE:C/x",
)
NAMES = (
    "CN=alice,OU=Lower,O=Kraft,C=DE",
    "CN=alice,OU=Lab",
    "O=none",
    "CN=al\\,ice,OU=Lower,C=X",
    "cn=alice",
    "C",
    "CN=é",
    "CN=É",
    "CN=straße,O=x",
)


def encoded(text: str | bytes) -> str:
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def answers(lines: Sequence[str]) -> list[str]:
    printed = ask_java(ORACLE, lines).split("\n")
    assert len(printed) == len(lines) + 1
    return printed[:-1]


def test_jaas_strings_are_parsed_as_by_kafka() -> None:
    answered = answers([f"jaas {encoded(text)}" for text in JAAS])
    for text, answer in zip(JAAS, answered, strict=True):
        try:
            entry = parse_jaas(text)
        except ValueError:
            ours = "!"
        else:
            options = sorted(entry.options.items())
            pairs = [f"{encoded(key)}={encoded(value)}" for key, value in options]
            ours = " ".join([encoded(entry.module), *pairs])
        assert ours == answer, text
    assert "!" in answered


def test_principal_mapping_rules_map_as_in_kafka() -> None:
    cases = [(rules, name) for rules in RULES for name in NAMES]
    answered = answers([f"map {encoded(rules)} {encoded(name)}" for rules, name in cases])
    for (rules, name), answer in zip(cases, answered, strict=True):
        try:
            ours = encoded(PrincipalMapper(rules).name(name))
        except (ValueError, NoMatchingRule):
            ours = "!"
        assert ours == answer, (rules, name)


def test_distinguished_names_are_written_as_java_writes_them() -> None:
    random = Random(7)
    names = [random_name(random) for _ in range(2000)]
    answered = answers([f"dn {encoded(name)}" for name in names])
    for name, answer in zip(names, answered, strict=True):
        assert rfc2253(name) == base64.b64decode(answer).decode(), name.hex()


def test_certificates_of_any_encoding_log_in_as_the_principal_that_java_names(tmp_path: Path) -> None:
    authority, port = Authority(), free_port()
    keys = {
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
        "listener.security.protocol.map": "CONTROLLER:SSL",
        **tls_keys(tmp_path, authority, "CN=node"),
        "listener.name.controller.ssl.client.auth": "required",
        "kraftd.audit.log": str(tmp_path / "audit.log"),
    }
    daemon = DaemonProcess(tmp_path, port, **{key.replace(".", "__"): value for key, value in keys.items()})
    daemon.format().begin()
    cn, unit, country = NameOID.COMMON_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME, NameOID.COUNTRY_NAME
    attribute, kinds = x509.NameAttribute, _ASN1Type
    several = x509.RelativeDistinguishedName
    subjects = [
        x509.Name([attribute(cn, "J\u00fcrgen \u20ac", kinds.BMPString)]),
        x509.Name([attribute(cn, "ab\U0001d11e", kinds.UniversalString)]),
        x509.Name([attribute(cn, "alice", kinds.T61String), attribute(unit, "a+b=c", kinds.PrintableString)]),
        x509.Name([attribute(country, "DE"), attribute(cn, ' #"a,b;<c>\\ ', kinds.UTF8String)]),
        x509.Name([several([attribute(cn, "multi"), attribute(unit, "valued", kinds.BMPString)])]),
        x509.Name([several([attribute(NameOID.EMAIL_ADDRESS, "a@b.c"), attribute(cn, "\x1b[31m\n")])]),
    ]
    try:
        wait_until(lambda: is_reached(port, authority), "the listener answers")
        for subject in subjects:
            connect(port, tls_of(authority, authority.issue(subject))).__exit__(None, None, None)
    finally:
        daemon.stop()
    events = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    principals = [one["principal"] for one in events if "CN=first" not in one.get("principal", "CN=first")]
    answered = answers([f"dn {encoded(subject.public_bytes())}" for subject in subjects])
    assert principals == [f"User:{base64.b64decode(answer).decode()}" for answer in answered]


def is_reached(port: int, authority: Authority) -> bool:
    try:
        with connect(port, tls_of(authority, authority.issue("CN=first"))):
            return True
    except Unreachable:
        return False
