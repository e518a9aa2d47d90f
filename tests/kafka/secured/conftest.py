"""The cluster over SASL_SSL that this folder's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.certificates import Authority
from testkit.cluster import random_uuid
from testkit.node import Kind
from testkit.process import free_port
from tests.kafka.secured.nodes import (
    OF_CONTROLLER,
    PROTOCOLS,
    USERS,
    OverSasl,
    broker,
    controller,
    scram_jaas,
)
from tests.security.secured_daemon import PLAIN_MODULE, SCRAM_MODULE, scram

SCRAM = "SCRAM-SHA-512"


@pytest.fixture(scope="package")
def over_sasl(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OverSasl]:
    """Controller 100 and broker 1, each a SCRAM user of the bootstrap, over SASL_SSL."""
    home, authority = tmp_path_factory.mktemp("sasl"), Authority()
    ports = free_port(), free_port(), free_port()
    common: dict[str, object] = {
        "listener.security.protocol.map": PROTOCOLS.format("SASL_SSL"),
        "controller.quorum.voters": f"100@127.0.0.1:{ports[0]}",
        "super.users": "User:controller;User:broker;User:admin;User:ANONYMOUS",
        "sasl.mechanism.controller.protocol": SCRAM,
        "delegation.token.secret.key": "shared-secret",
        f"{OF_CONTROLLER}sasl.enabled.mechanisms": SCRAM,
    }
    jaas = f"{OF_CONTROLLER}scram-sha-512.sasl.jaas.config"
    login = scram("admin", "admin-secret")
    first = controller(
        100,
        home / "controller",
        ports[0],
        authority,
        {**common, jaas: scram_jaas("controller", "controller-secret")},
        login,
        kind,
    )
    stock = broker(
        1,
        home / "broker",
        ports[1:],
        authority,
        {
            **common,
            jaas: scram_jaas("broker", "broker-secret"),
            "listener.name.external.sasl.enabled.mechanisms": f"PLAIN,{SCRAM}",
            "listener.name.external.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} required;",
        },
    )
    cluster_id = random_uuid()
    users = [f"{SCRAM}=[name={name},password={name}-secret]" for name in ("controller", "broker", "admin")]
    first.format(cluster_id, *(word for user in users for word in ("--add-scram", user)))
    stock.format(cluster_id, *(word for user in users for word in ("--add-scram", user)))
    try:
        first.start()
        stock.start()
        first.wait_ready()
        stock.wait_ready()
        yield OverSasl(first, stock, ports[2], client_files(home, authority))
    finally:
        stock.kill()
        first.kill()


def client_files(home: Path, authority: Authority) -> dict[str, Path]:
    """The properties files of Kafka's tools by user; `controller` is for the admin at the controller."""
    texts = {
        name: "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN_MODULE} required username="{name}" password="{password}";\n'
        for name, password in USERS.items()
    }
    texts["controller"] = (
        f"security.protocol=SASL_SSL\nsasl.mechanism={SCRAM}\n"
        f"sasl.jaas.config={scram_jaas('admin', 'admin-secret')}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={authority.write_pem(home / 'ca.pem')}\n"
    )
    files = {name: home / f"{name}.properties" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    return files
