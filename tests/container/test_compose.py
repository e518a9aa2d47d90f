"""docker/compose.yaml, unchanged: three controllers of the image and a stock broker form a cluster.

No compose engine runs here: the test reads the file and starts each service with podman. Each runs on its own
host (a network namespace), where names resolve to hosts. The same Kafka replaces the broker's image.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kraftd.cli.container import keys_of
from testkit.java import java_command, tools
from testkit.node import LOG_FLAGS
from testkit.process import Process, wait_until
from tests.container.engine import Engine
from tests.faults.namespaces import Hosts, NotPermitted

pytestmark = [pytest.mark.container, pytest.mark.kafka]

ROOT = Path(__file__).resolve().parents[2]
TAG = "localhost/kraftd:test"
BROKER = "broker"


class Services:
    """The services of the file, each on its host."""

    def __init__(self, engine: Engine, home: Path) -> None:
        self.engine, self.home = engine, home
        self.services: dict[str, Any] = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"]
        self.names = sorted(self.services)
        self.hosts = Hosts(range(1, len(self.names) + 1))
        self.broker: Process | None = None
        self.etc: list[Path] = []

    def address(self, name: str) -> str:
        return self.hosts.address(self.names.index(name) + 1)

    def namespace(self, name: str) -> str:
        return self.hosts.namespace(self.names.index(name) + 1)

    def environment(self, name: str) -> dict[str, str]:
        """The variables of a service, with the defaults that compose inserts for `${NAME:-default}`."""
        variables = self.services[name]["environment"].items()
        return {key: re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(value)) for key, value in variables}

    def start_controller(self, name: str) -> None:
        service = self.services[name]
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
        words = ["run", "--detach", "--name", name, "--network", f"ns:/run/netns/{self.namespace(name)}"]
        words += ["--read-only", "--cap-drop", "ALL", "--security-opt", service["security_opt"][0]]
        words += [f"--add-host={other}:{self.address(other)}" for other in self.names]
        words += [f"--volume={volume}" for volume in service["volumes"]]
        words += [f"--env={key}={value}" for key, value in self.environment(name).items()]
        self.engine.podman(*words, TAG)

    def healthy(self, name: str) -> bool:
        return self.engine.try_podman("exec", name, "kraftd", "container", "--check") == 0

    def quorum(self, name: str) -> str:
        command = ("kraftd", "quorum", "describe", "--bootstrap", f"{name}:9093")
        return self.engine.podman("exec", name, *command)

    def start_broker(self) -> Process:
        """Start Kafka itself with the service's variables, converted to keys as in its image."""
        environment = self.environment(BROKER)
        keys = [line.replace("/var/lib/kafka", str(self.home)) for line in keys_of(environment)]
        properties = self.home / "broker.properties"
        properties.write_text("\n".join(keys) + "\n")
        tools().run("storage", "format", "-t", environment["CLUSTER_ID"], "-c", properties).check()
        # `ip netns exec` shows this file as /etc/hosts to its command.
        etc = Path("/etc/netns", self.namespace(BROKER))
        etc.mkdir(parents=True)
        self.etc.append(etc)
        lines = ["127.0.0.1 localhost", *(f"{self.address(name)} {name}" for name in self.names)]
        (etc / "hosts").write_text("\n".join(lines) + "\n")
        java = java_command("kafka.Kafka", str(properties), flags=LOG_FLAGS)
        self.broker = Process(
            BROKER, self.home, lambda: ["ip", "netns", "exec", self.namespace(BROKER), *java]
        )
        self.broker.start()
        return self.broker

    def close(self) -> None:
        if self.broker is not None:
            self.broker.kill()
        for name in self.names:
            self.engine.try_podman("rm", "--force", "--time", "1", "--volumes", name)
        for etc in self.etc:
            (etc / "hosts").unlink()
            etc.rmdir()
        self.hosts.close()


@pytest.fixture
def services(engine: Engine, tmp_path: Path) -> Iterator[Services]:
    try:
        services = Services(engine, tmp_path)
    except NotPermitted as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    try:
        yield services
    finally:
        services.close()


def test_three_controllers_form_a_quorum_that_a_stock_broker_joins(services: Services) -> None:
    controllers = [name for name in services.names if name != BROKER]
    assert len(controllers) == 3
    for name in controllers:
        services.start_controller(name)
    for name in controllers:
        wait_until(lambda name=name: services.healthy(name), f"{name} is healthy", 60, 0.2)
    assert services.services[BROKER]["depends_on"].keys() == set(controllers)
    services.start_broker().wait_for_log("Kafka Server started", 120)
    for name in controllers:
        assert re.search(r"CurrentVoters.*1.*2.*3", services.quorum(name), re.S)
    # A second start finds all files in place.
    services.engine.podman("restart", "--time", "10", controllers[0])
    wait_until(lambda: services.healthy(controllers[0]), "healthy after a restart", 60, 0.2)
