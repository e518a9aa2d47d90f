"""Security settings of a file, and config providers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kraftd.config import ConfigError, DaemonConfig, load

BASE = """process.roles=controller
node.id=7
listeners=CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:9093
listener.security.protocol.map=CONTROLLER:{}
"""
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PREFIX = "listener.name.controller."
HANDLER = "sasl.server.callback.handler.class"
KAFKAS_HANDLER = "org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler"
USERS = (
    "sasl.enabled.mechanisms=PLAIN",
    "sasl.mechanism.controller.protocol=PLAIN",
    f'{PREFIX}plain.sasl.jaas.config={PLAIN} username="a" password="b" user_a="b";',
)
PROVIDERS = "org.apache.kafka.common.config.provider."

Load = Callable[..., DaemonConfig]


@pytest.fixture
def load_lines(tmp_path: Path) -> Load:
    def load_them(protocol: str, *lines: str) -> DaemonConfig:
        path = tmp_path / "controller.properties"
        path.write_text(BASE.format(protocol) + "\n".join(lines) + "\n")
        return load(path)

    return load_them


def problems(load_lines: Load, protocol: str, *lines: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load_lines(protocol, *lines)
    return "\n".join(refused.value.problems)


def test_keys_of_a_listener_win_over_plain_ones(load_lines: Load) -> None:
    config = load_lines(
        "SSL",
        "ssl.keystore.location=/plain.jks",
        "ssl.keystore.password=p",
        f"{PREFIX}ssl.keystore.location=/own.jks",
        f"{PREFIX}ssl.client.auth=required",
    )
    tls = config.security.listeners["CONTROLLER"].tls
    assert tls is not None
    assert (tls.keystore.location, tls.keystore.password, tls.client_auth) == ("/own.jks", "p", "required")
    assert config.security.client.tls == tls


def test_an_empty_password_of_a_store_is_a_password(load_lines: Load) -> None:
    names = ("ssl.keystore.password", "ssl.key.password", "ssl.truststore.password")
    tls = (
        load_lines("SSL", "ssl.keystore.location=/a.jks", *(f"{name}=" for name in names))
        .security.listeners["CONTROLLER"]
        .tls
    )
    assert tls is not None
    assert (tls.keystore.password, tls.keystore.key_password, tls.truststore.password) == ("", "", "")


def test_a_choice_among_cipher_suites_of_tls_13_is_a_warning(load_lines: Load) -> None:
    keys = (
        "ssl.keystore.location=/node.jks",
        "ssl.cipher.suites=TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256",
    )
    (warning,) = [one for one in load_lines("SSL", *keys).warnings if "cipher" in one]
    assert "cannot be chosen one by one" in warning
    every = f"{keys[1]},TLS_CHACHA20_POLY1305_SHA256"
    assert not [one for one in load_lines("SSL", keys[0], every).warnings if "cipher" in one]


def test_a_sasl_listener_has_mechanisms_users_and_limits(load_lines: Load) -> None:
    config = load_lines(
        "SASL_PLAINTEXT",
        f"{PREFIX}sasl.enabled.mechanisms=PLAIN",
        "sasl.mechanism.controller.protocol=PLAIN",
        f'{PREFIX}plain.sasl.jaas.config={PLAIN} username="a" password="b" user_c="d";',
        f"{PREFIX}plain.connections.max.reauth.ms=5000",
    )
    listener = config.security.listeners["CONTROLLER"]
    assert listener.mechanisms == ("PLAIN",)
    assert listener.jaas["PLAIN"].options["user_c"] == "d"
    assert listener.max_reauth_ms == {"PLAIN": 5000}
    assert config.security.client.mechanism == "PLAIN"


@pytest.mark.parametrize(
    ("protocol", "lines", "message"),
    [
        ("SSL", [], "CONTROLLER is TLS and needs a key store"),
        ("SASL_PLAINTEXT", [], "kraftd does not offer GSSAPI (Kerberos)"),
        ("SASL_PLAINTEXT", ["sasl.enabled.mechanisms=PLAIN"], "PLAIN needs a login module"),
        (
            "SASL_PLAINTEXT",
            ["sasl.enabled.mechanisms=PLAIN", f"{PREFIX}plain.sasl.jaas.config={PLAIN} x;"],
            "must be name=value",
        ),
        (
            "SASL_PLAINTEXT",
            ["sasl.enabled.mechanisms=PLAIN", f"{PREFIX}plain.sasl.jaas.config=a.B required;"],
            "a.B is not the login module of PLAIN",
        ),
        (
            "SASL_PLAINTEXT",
            [
                "sasl.enabled.mechanisms=SCRAM-SHA-512",
                "sasl.mechanism.controller.protocol=SCRAM-SHA-512",
                f"{PREFIX}scram-sha-512.sasl.jaas.config="
                'org.apache.kafka.common.security.scram.ScramLoginModule required username="x";',
            ],
            "password is missing",
        ),
        (
            "SASL_PLAINTEXT",
            ["sasl.enabled.mechanisms=OAUTHBEARER"],
            "OAUTHBEARER needs the keys of its tokens",
        ),
        ("PLAINTEXT", ["super.users=User:a,alice"], None),
        ("PLAINTEXT", ["super.users=alice"], "must be type:name"),
        ("PLAINTEXT", ["allow.everyone.if.no.acl.found=perhaps"], "must be true or false"),
        ("SSL", ["ssl.principal.mapping.rules=WRONG", "ssl.keystore.location=x"], "is no rule"),
        ("SSL", ["principal.builder.class=a.B"], "kraftd runs no Java classes"),
        ("PLAINTEXT", ["principal.builder.class=a.B"], "kraftd runs no Java classes"),
        ("PLAINTEXT", [f"{PREFIX}principal.builder.class=a.B"], f"{PREFIX}principal.builder.class=a.B:"),
        ("SASL_PLAINTEXT", [*USERS, f"{PREFIX}plain.{HANDLER}=a.B"], f"{PREFIX}plain.{HANDLER}=a.B: kraftd"),
        ("SASL_PLAINTEXT", [*USERS, f"{PREFIX}plain.{HANDLER}={KAFKAS_HANDLER}"], None),
        ("SASL_PLAINTEXT", [*USERS, "sasl.client.callback.handler.class=a.B"], "kraftd runs no Java classes"),
        ("PLAINTEXT", ["sasl.client.callback.handler.class=a.B"], None),
        ("SASL_PLAINTEXT", [*USERS, f"{HANDLER}=a.B"], None),  # without a mechanism Kafka does not read it
    ],
)
def test_invalid_security_settings_are_refused(
    load_lines: Load, protocol: str, lines: list[str], message: str | None
) -> None:
    if message is None:
        load_lines(protocol, *lines)
    else:
        assert message in problems(load_lines, protocol, *lines)


def test_no_problem_shows_a_secret(load_lines: Load) -> None:
    text = problems(
        load_lines,
        "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        f'{PREFIX}plain.sasl.jaas.config={PLAIN} password="hush" x;',
        "ssl.keystore.password=hush",
        "num.partitions=hush${env:HOME}",
        "config.providers=env",
        f"config.providers.env.class={PROVIDERS}EnvVarConfigProvider",
    )
    assert "hush" not in text


def test_variables_are_replaced_by_the_values_of_their_providers(
    load_lines: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secrets.properties").write_text("partitions=3\nusers=User:a\n")
    (tmp_path / "replicas").write_text("2")
    monkeypatch.setenv("KRAFTD_TEST_PAUSE", "123")
    classes = {"file": "File", "directory": "Directory", "env": "EnvVar"}
    config = load_lines(
        "PLAINTEXT",
        f"config.providers={','.join(classes)}",
        *(f"config.providers.{name}.class={PROVIDERS}{kind}ConfigProvider" for name, kind in classes.items()),
        f"num.partitions=${{file:{tmp_path}/secrets.properties:partitions}}",
        f"super.users=User:x;${{file:{tmp_path}/secrets.properties:users}}",
        f"default.replication.factor=${{directory:{tmp_path}:replicas}}",
        "controller.quorum.retry.backoff.ms=${env:KRAFTD_TEST_PAUSE}",
    )
    assert (config.num_partitions, config.default_replication_factor) == (3, 2)
    assert config.quorum_retry_backoff_ms == 123
    assert config.security.authorizer.super_users == {"User:x", "User:a"}


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("${file:/absent:key}", "/absent cannot be read"),
        ("${file:PATH/secrets.properties:absent}", "has no key absent"),
        ("${directory:PATH:../secrets.properties}", "has no file"),
        ("${env:KRAFTD_ABSENT}", "there is no environment variable KRAFTD_ABSENT"),
        ("${env:HOME}", "allowlist.pattern"),
        ("${file:/etc/passwd:root}", "allowed.paths"),
    ],
)
def test_a_variable_that_cannot_be_resolved_is_refused(
    load_lines: Load, tmp_path: Path, variable: str, message: str
) -> None:
    (tmp_path / "secrets.properties").write_text("a=b\n")
    text = problems(
        load_lines,
        "PLAINTEXT",
        "config.providers=file,directory,env",
        f"config.providers.file.class={PROVIDERS}FileConfigProvider",
        f"config.providers.file.param.allowed.paths={tmp_path},/absent",
        f"config.providers.directory.class={PROVIDERS}DirectoryConfigProvider",
        f"config.providers.env.class={PROVIDERS}EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern=KRAFTD.*",
        "num.partitions=" + variable.replace("PATH", str(tmp_path)),
    )
    assert message in text


def test_a_provider_that_is_not_kafkas_is_refused(load_lines: Load) -> None:
    text = problems(load_lines, "PLAINTEXT", "config.providers=x", "config.providers.x.class=a.B")
    assert "config.providers.x.class: a.B" in text


CLIENTS = (
    "listeners=CONTROLLER://127.0.0.1:9093,CLIENT://127.0.0.1:9092",
    "kraftd.client.listener.names=CLIENT",
    "sasl.enabled.mechanisms=PLAIN",
)


def test_node_logs_in_at_the_brokers_listener_by_that_listeners_keys(load_lines: Load) -> None:
    config = load_lines(
        "PLAINTEXT,CLIENT:PLAINTEXT,OUTER:SASL_SSL",
        *CLIENTS,
        "kraftd.client.broker.listener.name=OUTER",
        "sasl.mechanism.inter.broker.protocol=PLAIN",
        f'listener.name.outer.plain.sasl.jaas.config={PLAIN} username="k" password="p";',
        "listener.name.outer.ssl.truststore.location=/trust.pem",
    )
    own = config.security.brokers["OUTER"]
    assert own.jaas is not None and own.tls is not None
    assert (own.mechanism, own.jaas.options["username"]) == ("PLAIN", "k")
    assert own.tls.truststore.location == "/trust.pem"
    assert config.security.client.tls is None


def test_brokers_listener_of_unknown_protocol_or_without_a_login_is_refused(load_lines: Load) -> None:
    lines = (*CLIENTS, "kraftd.client.broker.listener.name=OUTER")
    found = problems(load_lines, "PLAINTEXT,CLIENT:PLAINTEXT", *lines)
    assert "it is not in listener.security.protocol.map; add OUTER:PLAINTEXT" in found
    found = problems(load_lines, "PLAINTEXT,CLIENT:PLAINTEXT,OUTER:SASL_PLAINTEXT", *lines)
    assert "kraftd does not offer GSSAPI" in found


def test_client_listener_without_a_login_at_brokers_is_a_warning(load_lines: Load) -> None:
    users = f'listener.name.client.plain.sasl.jaas.config={PLAIN} user_c="d";'
    mechanism = "sasl.mechanism.inter.broker.protocol=PLAIN"
    config = load_lines("PLAINTEXT,CLIENT:SASL_PLAINTEXT", *CLIENTS, users, mechanism)
    assert config.security.brokers == {}
    (warning,) = [one for one in config.warnings if "log in at brokers" in one]
    assert "CLIENT: this node cannot" in warning and "username is missing" in warning and '"d"' not in warning
